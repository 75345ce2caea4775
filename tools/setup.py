"""Set the repository up on a fresh machine: a virtual environment, the locked packages, Java, the jars.

Needs Python 3.11 and nothing else; uses the standard library only. What is there already is left alone, so that a
second run takes a second or two. As root with apt it installs missing system packages and says so; else it says in one
sentence what to type.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ENVIRONMENT = HERE / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
LOCK = HERE / "requirements" / "dev.txt"
STAMP = ENVIRONMENT / ".zerotail-setup"


def say(line: str) -> None:
    """A line of progress."""
    print(f"setup: {line}", file=sys.stderr, flush=True)  # noqa: T201


def give_up(line: str) -> None:
    """One sentence with what to type, and the end."""
    say(line)
    sys.exit(4)


def install_package(name: str, what_for: str, *, needed: bool) -> None:
    """Install a Debian package where we may; else say what to type."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {name} ({what_for}): apt-get install {name}")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update"], check=False, env=environment, **quiet)
        command = ["apt-get", "install", "-y", "--no-install-recommends", name]
        if subprocess.run(command, check=False, env=environment, **quiet).returncode == 0:
            return
    sentence = f"{what_for} needs the package {name}; type: sudo apt-get install {name}"
    give_up(sentence) if needed else say(sentence)


def require_python() -> None:
    """The version that the locked packages were chosen for, or a newer one."""
    if sys.version_info < (3, 11):  # noqa: UP036
        found = ".".join(str(part) for part in sys.version_info[:3])
        give_up(f"Python 3.11 is needed and this is {found}; type: make PYTHON=python3.11 setup")


def make_environment() -> None:
    """The virtual environment in `.venv`."""
    if PYTHON.exists():
        return
    say("making a virtual environment in .venv")
    make = [sys.executable, "-m", "venv", str(ENVIRONMENT)]
    if subprocess.run(make, check=False, capture_output=True).returncode != 0:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        name = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        install_package(name, "a virtual environment", needed=True)
        subprocess.run(make, check=True)


def install_packages() -> None:
    """The locked packages, each with its hash, and zerotail itself, in place."""
    wanted = hashlib.sha256(LOCK.read_bytes() + (HERE / "pyproject.toml").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    count = sum(1 for line in LOCK.read_text().splitlines() if "==" in line)
    say(f"installing {count} packages with their hashes (a few minutes the first time)")
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    quiet = [] if sys.stderr.isatty() else ["-q"]
    subprocess.run([*pip, *quiet, "--require-hashes", "-r", str(LOCK)], check=True, cwd=HERE)
    subprocess.run([*pip, "-q", "--no-deps", "--no-build-isolation", "-e", "."], check=True, cwd=HERE)
    STAMP.write_text(wanted)


def main() -> int:
    """Everything, in order."""
    require_python()
    make_environment()
    try:
        install_packages()
    except subprocess.CalledProcessError as error:
        give_up(f"pip could not install the packages (exit code {error.returncode}); type: make setup    to try again")
    if shutil.which("strace") is None:
        install_package("strace", "tests that kill a process at every system call", needed=False)
    doctor = subprocess.run(
        [str(PYTHON), "-m", "zerotail", "doctor", "--install"], check=False, cwd=HERE, stdout=subprocess.PIPE, text=True
    )
    if doctor.returncode != 0:
        sys.stderr.write(doctor.stdout)
        give_up("something is still missing, see above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
