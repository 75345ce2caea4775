"""When a result was measured, of which code, on what, and by which command: every stored result carries it.

A result without that is a number that nobody can measure again. What is dirty is what is measured: a result that
joins an earlier one changes the file it is kept in, and a page that shows it changes with it; neither counts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from zerotail.drill.surroundings import machine, versions

MEASURED = "measured"
RECORDED = "recorded from the history of the file"
"""The result was stored without a stamp; what it says is what the history of the repository proves, and no more."""
_ROOT = Path(__file__).parents[3]
_PACKAGES = ("zerotail", "pyspark", "confluent-kafka", "psycopg")
"""Python packages, which the commit tells as well: a page does not."""
_MEASURED_PATHS = ("src", "examples", "requirements", "pyproject.toml")
_WHERE_TO = {"--result": 2, "--page": 2, "--from": 2, "--keep": 1, "--json": 1}
"""Options that say where a result goes and not what is measured, with the words that each takes."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Of one run of a benchmark."""

    date: str
    """In UTC."""
    commit: str
    """Of the tree that was measured; empty where it is in none."""
    dirty: bool | None
    """Whether the code differed from the commit; None where nobody knows."""
    machine: dict[str, str]
    """Besides what it is: how busy it was when the run began, as the load average of a minute tells."""
    versions: dict[str, str]
    command: str
    source: str = MEASURED


def make_stamp(argv: Sequence[str]) -> Stamp:
    """Of a run that begins now, of the program with these arguments."""
    return Stamp(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=_git("rev-parse", "HEAD") or "",
        dirty=is_dirty(),
        machine=machine() | {"load": f"{os.getloadavg()[0]:.1f}"},
        versions=versions(),
        command=command_of(argv),
    )


def is_dirty() -> bool | None:
    """Whether what is measured here is in no commit, new files included; None where there is no repository."""
    changed = _git("status", "--porcelain", "--", *_MEASURED_PATHS)
    return None if changed is None else bool(changed)


def is_current(stamp: Stamp) -> bool:
    """Whether a result is of the code that is here: of this commit, or of one that differs in nothing measured."""
    if stamp.source != MEASURED or stamp.dirty is not False or is_dirty() is not False:
        return False
    return _git("diff", "--quiet", stamp.commit, "HEAD", "--", *_MEASURED_PATHS) is not None


def command_of(argv: Sequence[str]) -> str:
    """What to type to measure the same."""
    words = list(argv)
    for option, length in _WHERE_TO.items():
        while option in words:
            place = words.index(option)
            del words[place : place + length]
    kept = [word for word in words if word.partition("=")[0] not in _WHERE_TO]
    return shlex.join(["zerotail", *kept])


def told(stamp: Stamp) -> str:
    """A line of a page."""
    change = ", with changes that are in no commit," if stamp.dirty else ""
    on = ", ".join(_machine(stamp.machine))
    using = ", ".join(f"{name} {number}" for name, number in stamp.versions.items() if name not in _PACKAGES)
    if stamp.source == RECORDED:
        known = f"; known of it: {on}; {using}" if on and using else ""
        return f"Stored {stamp.date[:10]} at `{stamp.commit[:10]}` by `{stamp.command}` ({RECORDED}{known})."
    return f"Measured {stamp.date[:10]} at `{stamp.commit[:10]}`{change} on {on}, {using}, by `{stamp.command}`."


def _machine(known: dict[str, str]) -> list[str]:
    said = {**known}
    cores, load = said.pop("cores", None), said.pop("load", None)
    return [
        *([f"{cores} cores"] if cores else []),
        *said.values(),
        *([f"at a load of {load} before it began"] if load else []),
    ]


def _git(*words: str) -> str | None:
    """What git says of our own tree; None where it is none."""
    try:
        done = subprocess.run(["git", "-C", _ROOT, *words], capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
