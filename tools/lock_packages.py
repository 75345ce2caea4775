"""Write `requirements/*.txt` anew: one file per extra, every package with its hashes, no address inside.

All files are cut from one resolution, `dev.txt`, so that no two of them disagree. Needs `uv` on the path:

    pip install uv && python tools/lock_packages.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
REQUIREMENTS = HERE / "requirements"
EXTRAS = ("dev", "kafka", "postgres", "spark", "lab")


def compile_extra(extra: str) -> None:
    """Resolve one extra; the others follow what `dev` chose."""
    command = ["uv", "pip", "compile", "-q", "--generate-hashes", "--python-version", "3.11", "--no-annotate"]
    command += ["--custom-compile-command", "make lock", "--extra", extra, "-o", f"requirements/{extra}.txt"]
    if extra != "dev":
        command += ["-c", "requirements/dev.txt"]
    subprocess.run([*command, "pyproject.toml"], check=True, cwd=HERE)


if __name__ == "__main__":
    REQUIREMENTS.mkdir(exist_ok=True)
    for name in EXTRAS:
        compile_extra(name)
        sys.stdout.write(f"wrote requirements/{name}.txt\n")
