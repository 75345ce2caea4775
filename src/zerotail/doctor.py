"""Is everything here that zerotail needs? Each finding says what was seen and, when it is not enough, what to type.

`examine` only looks. `install_missing` brings what can be brought without asking a person: packages where we are root
and have apt, and the jars.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from zerotail.errors import ZerotailError
from zerotail.jars.lock import FOLDERS, Folder, cache_folder, find_wrong_jar, jars_folder, locked_jars
from zerotail.jars.resolve import install_jars
from zerotail.lab.broker import class_archive
from zerotail.lab.class_archive import make_class_archive
from zerotail.lab.ports import count_free_ports
from zerotail.machine import (
    available_memory_bytes,
    can_install_packages,
    find_java,
    find_java_version,
    find_postgres_programs,
    find_postgres_version,
    install_packages,
    java_sought_in,
)

_GIB = 1024**3
_PYTHON = (3, 11)
_JAVA = 17
_MEMORY_GIB = 4
_DISK_GIB = 5
_PORTS = 40
_JAVA_PACKAGES = ("openjdk-17-jre-headless", "default-jre-headless")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    name: str
    ok: bool
    seen: str
    to_type: str = ""
    """The line that would mend it; shown where it is not ok."""


def examine(bindir: str | None = None) -> list[Finding]:
    """Look at everything; changes nothing."""
    return [
        _python(),
        _java(),
        *(_jars(folder) for folder in FOLDERS),
        _postgres(bindir),
        _memory(),
        _disk(),
        _free_ports(),
    ]


def _python() -> Finding:
    seen = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("Python", sys.version_info >= _PYTHON, seen, "apt-get install python3.11 python3.11-venv")


def _java() -> Finding:
    java = find_java()
    version = find_java_version(java) if java else None
    seen = f"{version} ({java})" if version else f"not found in {java_sought_in()}"
    return Finding("Java", (version or 0) >= _JAVA, seen, f"apt-get install {_JAVA_PACKAGES[0]}")


def _jars(folder: Folder) -> Finding:
    jars = [jar for jar in locked_jars() if jar.folder == folder]
    trouble = find_wrong_jar(jars, jars_folder(folder))
    seen = trouble or f"{len(jars)} jars, each with the digest of the lock file"
    return Finding(f"jars of {folder}", trouble is None, seen, "zerotail doctor --install")


def _postgres(bindir: str | None) -> Finding:
    programs = find_postgres_programs(bindir)
    version = find_postgres_version(programs) if programs else None
    seen = f"{version} ({programs})" if version else f"not found{f' in {bindir}' if bindir else ''}"
    return Finding("PostgreSQL", version is not None, seen, "pip install 'zerotail[lab]'")


def _memory() -> Finding:
    available = available_memory_bytes() / _GIB
    return Finding(
        "memory",
        available >= _MEMORY_GIB,
        f"{available:.1f} GiB available",
        f"free at least {_MEMORY_GIB} GiB",
    )


def _disk() -> Finding:
    where = cache_folder()
    while not where.exists():
        where = where.parent
    free = shutil.disk_usage(where).free / _GIB
    return Finding("disk", free >= _DISK_GIB, f"{free:.1f} GiB free at {where}", f"free at least {_DISK_GIB} GiB")


def _free_ports() -> Finding:
    free = count_free_ports(_PORTS)
    return Finding("ports", free >= _PORTS, f"{free} of {_PORTS} wanted are free", "ss -ltn    # who listens?")


def install_missing(say: Callable[[str], None]) -> None:
    """Bring what is missing and can be brought; `say` is told each step. What stays missing, `examine` shows."""
    if not _java().ok:
        if can_install_packages():
            say(f"installing Java: apt-get install {_JAVA_PACKAGES[0]}")
            if not install_packages(_JAVA_PACKAGES[0]):
                install_packages(_JAVA_PACKAGES[1])
        else:
            say(f"Java is missing; type: sudo apt-get install {_JAVA_PACKAGES[0]}")
    if not all(_jars(folder).ok for folder in FOLDERS):
        _install_jars(say)
    if _java().ok and _jars("kafka").ok and not class_archive().is_file():
        say("preparing Kafka's class archive, once (about 10 s)")
        make_class_archive()
    if _java().ok and _jars("spark").ok:
        _prepare_spark(say)


def _prepare_spark(say: Callable[[str], None]) -> None:
    from zerotail.spark.class_archive import class_archive, make_class_archive

    if not class_archive().is_file():
        say("preparing Spark's class archive, once (about 20 s)")
        if make_class_archive() is None:
            say(f"{class_archive()} could not be written; Spark starts without it, some seconds slower")


def _install_jars(say: Callable[[str], None]) -> None:
    if shutil.which("mvn") is None and can_install_packages():
        say("installing Maven: apt-get install maven")
        install_packages("maven")
    say("loading the jars (about 30 s the first time)")
    try:
        for folder in install_jars():
            say(f"jars are in {folder}")
    except ZerotailError as error:
        say(f"the jars could not be loaded: {error.message}")
