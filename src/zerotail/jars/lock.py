"""Which jars we run with, by SHA-256, and where they lie.

There are several folders because Kafka and Spark need different versions of the same logging library: `kafka` is the
classpath of brokers and MirrorMaker, `spark` is what Spark's Kafka connector adds to PySpark's own jars, and `agent`
is loaded into MirrorMaker's process to tell its metrics. They are kept outside the repository, in a cache named after
the lock file's content, so that a second clone loads nothing again and a changed lock never mixes with old jars.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from zerotail.errors import Broken, Refused

Folder = Literal["kafka", "spark", "agent"]
FOLDERS: tuple[Folder, ...] = ("kafka", "spark", "agent")
_LOCK = Path(__file__).with_name("jars.lock")


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock file."""

    folder: Folder
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name Maven and Ivy give the file."""
        return f"{self.artifact}-{self.version}.jar"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """The jars of a lock file's text."""
    jars = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match line.split():
            case [("kafka" | "spark" | "agent") as folder, coordinate, sha256]:
                group, artifact, version = coordinate.split(":")
                jars.append(Jar(folder, group, artifact, version, sha256))
            case _:
                raise Broken(f"jars.lock has a line that is none: {line!r}")
    return tuple(jars)


@cache
def locked_jars() -> tuple[Jar, ...]:
    """The jars this version of zerotail runs with."""
    return parse_lock(_LOCK.read_text())


def cache_folder() -> Path:
    """Where things are kept between runs: `ZEROTAIL_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get("ZEROTAIL_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "zerotail"


def jars_folder(folder: Folder) -> Path:
    """The folder of jars that belongs to this lock file."""
    name = hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]
    return cache_folder() / "jars" / name / folder


def sha256_of(path: Path) -> str:
    """The digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_wrong_jar(jars: Iterable[Jar], where: Path) -> str | None:
    """The first thing wrong with the jars in `where`, as a sentence; None when all are there and right."""
    for jar in jars:
        path = where / jar.file_name
        if not path.is_file():
            return f"{jar.file_name} is missing in {where}"
        found = sha256_of(path)
        if found != jar.sha256:
            return f"{jar.file_name} has SHA-256 {found[:16]}…, the lock file says {jar.sha256[:16]}…"
    return None


def require_jars(folder: Folder) -> Path:
    """The folder of jars, every one compared with the lock file; `Refused`, naming the jar, when one is not right."""
    where = jars_folder(folder)
    wanted = [jar for jar in locked_jars() if jar.folder == folder]
    if trouble := find_wrong_jar(wanted, where):
        raise Refused(
            f"the jars of {folder} are not what the lock file says: {trouble}.",
            code="ZT101",
            why="A broker with another library inside is not the one that was tested.",
            tries=["zerotail doctor --install"],
        )
    return where
