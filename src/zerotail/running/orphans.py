"""Processes that a child leaves behind: a JVM whose driver did not come up, a worker whose JVM was killed.

Whoever wants to know of them says so to the kernel, which gives them a new parent then: us. They have a moment to end
by themselves, for they may have scratch files to remove; what is there behind it is killed. Children that were there
before are somebody else's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Set
from contextlib import suppress

from zerotail.children import find_children

_PR_SET_CHILD_SUBREAPER = 36
_LAST_SECONDS = 3.0
_LOOK_SECONDS = 0.02
_libc = ctypes.CDLL(None)


class Orphans:
    """What children of this process have left behind."""

    def __init__(self) -> None:
        self._before = find_children()
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._killed_at: dict[int, float] = {}

    def end(self, ours: Set[int]) -> None:
        """Tell every child that is none of ours to end."""
        for pid in find_children() - self._before - ours - self._killed_at.keys():
            self._killed_at[pid] = time.monotonic() + _LAST_SECONDS
            _send(pid, signal.SIGTERM)

    def look(self) -> bool:
        """Kill those whose time is over, and collect those that have ended; whether any is left."""
        for pid, at in list(self._killed_at.items()):
            if _has_ended(pid):
                del self._killed_at[pid]
            elif time.monotonic() >= at:
                _send(pid, signal.SIGKILL)
        return bool(self._killed_at)

    def wait(self, ours: Set[int]) -> None:
        """End them all, also those that the first ones leave behind; none comes to us any more."""
        while True:
            self.end(ours)
            if not self.look():
                break
            time.sleep(_LOOK_SECONDS)
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True
