"""Of two instances the one that was started by accident ends: the one that comes second (E17).

The newer instance wins every claim, so the second one would end the first. Unless it is told to, it looks before it
claims anything whether another one says that it is at work, and gives it some time: one that is ending, or was killed
on a machine that we cannot see, says nothing more. Nothing rests on this: claims keep two instances apart.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection
from pathlib import Path

from zerotail.core.identity import SiteName
from zerotail.errors import Refused
from zerotail.postgres.process import ProcessSeen, read_reports
from zerotail.postgres.transaction import Session

FRESH_SECONDS = 5.0
"""Whoever has said nothing for so long is not at work: a sign of life comes every two seconds."""
_WATCH_SECONDS = 10.0
_LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 2.0

Part = tuple[str, str]
"""Role and name."""


class AtWorkError(Refused):
    """Another instance is at work, and this one was not told to take over."""

    exit_code = 6


def require_alone(dsn: str, site: SiteName, parts: Collection[Part], line: str) -> None:
    """Return when nobody else does one of these parts at the site; `line` is what starts this one all the same."""
    session = Session(dsn, "zerotail run", patience_seconds=_PATIENCE_SECONDS, connect_seconds=_PATIENCE_SECONDS)

    def others() -> list[ProcessSeen]:
        seen = session.read(read_reports)
        return find_others(seen, site, parts) if isinstance(seen, tuple) else []

    try:
        left = watch(others)
    finally:
        session.close()
    if left:
        one = left[0]
        raise AtWorkError(
            f"{one.role} {one.name} is at work at {site} already: process {one.pid} on {one.host}, "
            f"seen {one.silent_seconds:.1f} s ago.",
            code="ZT489",
            why="Two of them are kept apart by their claims, and the newer one would end the older one.",
            tries=[f"{line} --take-over    # to go on in its place"],
        )


def watch(others: Callable[[], list[ProcessSeen]], wait: Callable[[float], None] = time.sleep) -> list[ProcessSeen]:
    """Who is still at work after some time; nobody as soon as there is nobody."""
    left = others()
    for _ in range(round(_WATCH_SECONDS / _LOOK_SECONDS)):
        if not left:
            break
        wait(_LOOK_SECONDS)
        left = others()
    return left


def find_others(seen: Collection[ProcessSeen], site: SiteName, parts: Collection[Part]) -> list[ProcessSeen]:
    """Whoever says that it does one of these parts, and may be alive."""
    return [
        one
        for one in seen
        if (one.site, one.doing != "stopped") == (site, True)
        and (one.role, one.name) in parts
        and one.silent_seconds < FRESH_SECONDS
        and not _is_gone(one)
    ]


def _is_gone(one: ProcessSeen) -> bool:
    """Whether it was a process of this machine that has ended, or has our own number: a container starts again so."""
    if one.host != socket.gethostname():
        return False
    if one.pid == os.getpid():
        return True
    try:
        stat = Path(f"/proc/{one.pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"
