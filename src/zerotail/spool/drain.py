"""Brings the entries of a spool to the active site, in order, and lets them go when they are behind the gate.

1. read entries that are durable here
2. store them as instructions, and wait at the gate
3. keep aside, durably, those whose identifier belongs to other bytes or whose partition does not exist: they were
   acknowledged, so they are not dropped
4. let them go: note how far it is drained, remove the files that nobody needs

Killed between two steps, it does the same entries again: in 2 the identifiers are found, in 3 the sequence.

A site that works without the other one takes entries, too, but has no gate. They stay here as well until both sites
have them: the drain goes on behind them, looks now and then whether there is a gate again, and then brings all of them
once more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from zerotail.spool.aside import keep_aside
from zerotail.spool.sites import Kept, NotYet, Taken, Takes

if TYPE_CHECKING:
    from zerotail.spool.frame import Entry
    from zerotail.spool.spool import Spool

MOST_ENTRIES = 2_000
MOST_BYTES = 4 * 1024 * 1024
_LOOK_SECONDS = 0.1
_AGAIN_SECONDS = 0.2
_GATE_SECONDS = 2.0
"""Between two looks whether entries that were taken by a site alone are behind a gate by now."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one round came to."""

    entries: int
    new: int
    """How many of them were not instructions before."""
    set_aside: int


@dataclass(slots=True)
class Place:
    """How far a drain has come beyond what the spool may forget."""

    taken: int = 0
    """The last entry that a site without the other one has taken; it is still here."""
    told: int = 0
    """The last one that was counted."""
    look_at: float = 0.0

    def step(self, entries: Sequence[Entry], taken: Taken) -> Step:
        """What came of these, without what was counted before."""
        count, aside = (sum(one.sequence > self.told for one in some) for some in (entries, taken.refused))
        self.told = max(self.told, entries[-1].sequence)
        return Step(count, taken.new, aside)


def drain_step(spool: Spool, sites: Takes, place: Place | None = None) -> Step | NotYet | None:
    """Drain the next entries; None when there are none."""
    place = place or Place()
    after = max(spool.drained, place.taken)
    entries = spool.read(after, most_entries=MOST_ENTRIES, most_bytes=MOST_BYTES)  # 1
    if not entries:
        if after == spool.drained:
            return None
        if time.monotonic() < place.look_at:
            return _kept(spool)
        entries = spool.read(spool.drained, most_entries=MOST_ENTRIES, most_bytes=MOST_BYTES)
    taken = sites.take(spool.producer, entries)  # 2
    if isinstance(taken, NotYet):
        return taken
    keep_aside(spool.folder, taken.refused)  # 3
    if taken.exposed:
        is_new = entries[-1].sequence > place.taken
        place.taken = max(place.taken, entries[-1].sequence)
        place.look_at = time.monotonic() + _GATE_SECONDS
        return place.step(entries, taken) if is_new else _kept(spool)
    if entries[0].sequence == spool.drained + 1:
        spool.release(entries[-1].sequence)  # 4
    else:
        place.taken = 0  # there is a gate again: from the first one that is still here
    return place.step(entries, taken)


def _kept(spool: Spool) -> Kept:
    return Kept(
        f"a site that works without the other one has taken {spool.waiting} entries, and they are kept here until both "
        "sites have them"
    )


class Draining:
    """A thread that drains a spool as long as it is open."""

    def __init__(self, spool: Spool, sites: Takes) -> None:
        self._spool = spool
        self._sites = sites
        self._place = Place()
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
            if isinstance(step, Kept):
                self._spool.wait_for_entries(self._place.taken, _AGAIN_SECONDS)
            elif isinstance(step, NotYet):
                self._stop.wait(_AGAIN_SECONDS)
            elif step is None:
                self._spool.wait_for_entries(self._spool.drained, _LOOK_SECONDS)

    def _step(self) -> Step | NotYet | None:
        try:
            return drain_step(self._spool, self._sites, self._place)
        except Exception as failure:  # noqa: BLE001 - nobody listens here; trying again is harmless, and `waits_for` says why
            return NotYet(str(failure))
