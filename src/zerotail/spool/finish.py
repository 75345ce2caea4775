"""Drain a spool to its end, as an operator does whose service is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from zerotail.deadline import Deadline
from zerotail.errors import Unfinished
from zerotail.spool.drain import Place, drain_step
from zerotail.spool.sites import NotYet, Takes
from zerotail.spool.spool import Spool

_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What was brought to the active site."""

    folder: str
    producer: str
    entries: int
    known: int
    """How many of them were instructions already: their removal had not been noted."""
    set_aside: int
    seconds: float


def drain_to_end(
    spool: Spool, sites: Takes, patience_seconds: float, tell: Callable[[int], None] = lambda _: None
) -> DrainReport:
    """Return when nothing waits; `Unfinished` when nothing was drained for so long."""
    began = time.monotonic()
    entries = new = set_aside = 0
    deadline = Deadline.after(patience_seconds)
    place = Place()
    while (step := drain_step(spool, sites, place)) is not None:
        if isinstance(step, NotYet):
            if deadline.passed:
                raise Unfinished(
                    f"{spool.waiting} entries of {spool.folder} wait, for {patience_seconds:g} s now: {step.reason}.",
                    code="ZT911",
                    why=f"{entries} were drained. The rest is safe where it is.",
                    tries=["zerotail status", f"zerotail spool drain {spool.folder}"],
                )
            time.sleep(min(_AGAIN_SECONDS, deadline.seconds_left))
            continue
        entries, new, set_aside = entries + step.entries, new + step.new, set_aside + step.set_aside
        deadline = Deadline.after(patience_seconds)
        tell(entries)
    seconds = round(time.monotonic() - began, 3)
    return DrainReport(str(spool.folder), spool.producer, entries, entries - new - set_aside, set_aside, seconds)
