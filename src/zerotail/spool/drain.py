"""Brings the entries of a spool to the active site, in order, and lets them go when they are behind the gate.

1. read entries that are durable here
2. store them as instructions, and wait at the gate
3. keep aside, durably, those whose identifier belongs to other bytes or whose partition does not exist: they were
   acknowledged, so they are not dropped
4. let them go: note how far it is drained, remove the files that nobody needs

Killed between two steps, it does the same entries again: in 2 the identifiers are found, in 3 the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from zerotail.spool.aside import keep_aside
from zerotail.spool.sites import NotYet, Takes

if TYPE_CHECKING:
    from zerotail.spool.spool import Spool

MOST_ENTRIES = 2_000
MOST_BYTES = 4 * 1024 * 1024
_LOOK_SECONDS = 0.1
_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Step:
    """What one round came to."""

    entries: int
    new: int
    """How many of them were not instructions before."""
    set_aside: int


def drain_step(spool: Spool, sites: Takes) -> Step | NotYet | None:
    """Drain the next entries; None when there are none."""
    entries = spool.read(spool.drained, most_entries=MOST_ENTRIES, most_bytes=MOST_BYTES)  # 1
    if not entries:
        return None
    taken = sites.take(spool.producer, entries)  # 2
    if isinstance(taken, NotYet):
        return taken
    keep_aside(spool.folder, taken.refused)  # 3
    spool.release(entries[-1].sequence)  # 4
    return Step(len(entries), taken.new, len(taken.refused))


class Draining:
    """A thread that drains a spool as long as it is open."""

    def __init__(self, spool: Spool, sites: Takes) -> None:
        self._spool = spool
        self._sites = sites
        self._stop = Event()
        self.waits_for = ""
        """Why it does not go on; empty while it does."""
        self._thread = Thread(target=self._run, name="zerotail drain", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Finish the round, and end; what is left stays for the next start."""
        self._stop.set()
        self._thread.join()
        self._sites.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            step = self._step()
            self.waits_for = step.reason if isinstance(step, NotYet) else ""
            if isinstance(step, NotYet):
                self._stop.wait(_AGAIN_SECONDS)
            elif step is None:
                self._spool.wait_for_entries(self._spool.drained, _LOOK_SECONDS)

    def _step(self) -> Step | NotYet | None:
        try:
            return drain_step(self._spool, self._sites)
        except Exception as failure:  # noqa: BLE001 - nobody listens here; trying again is harmless, and `waits_for` says why
            return NotYet(str(failure))
