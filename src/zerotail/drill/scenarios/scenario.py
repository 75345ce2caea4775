"""A scenario: a story on the rehearsal's stage that says beforehand what may be found."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from zerotail.core.epoch import EpochRow
from zerotail.deadline import Deadline
from zerotail.drill.acts import rejoin
from zerotail.drill.departure import END_SECONDS
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.running import ALL
from zerotail.operate.plan import COPY
from zerotail.postgres import lineage
from zerotail.postgres.connection import session

MESSAGES = 500
"""So many new ones show that the flow goes on."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A disaster by name."""

    name: str
    summary: str
    play: Callable[[Rehearsal], None]
    faults: tuple[str, ...] = ()
    """What must have bitten; empty for a planned change of roles."""
    replayed: bool = False
    """The state is rebuilt from the journal at a takeover."""
    afterwards: Callable[[Rehearsal], None] | None = None
    """What is looked at when the judges have read both sites as the story left them."""

    @property
    def is_planned(self) -> bool:
        """Whether roles change without any loss: then nothing may be in doubt, whatever the receiver remembers."""
        return not self.faults

    @property
    def allowed(self) -> str:
        """What may be found, by receiver class and policy: drills have the policies `hold` for doubts and `release`
        for what is exposed.
        """
        if self.is_planned:
            return "all receiver classes: nothing lost, duplicated, reordered or in doubt"
        return "R0, R1, R2: nothing lost, duplicated, reordered or in doubt; R3 with policy hold: listed doubts only"


def promise_departure(rehearsal: Rehearsal, parts: Collection[str] = ALL, since: float = 0.0) -> None:
    """The very processes that were at work at an old site are gone in time after they were refused."""
    if rehearsal.departing is None:
        return
    told = rehearsal.departing.wait(parts, since)
    names = ", ".join(part for part in ALL if part in parts)
    rehearsal.promise(
        f"{names} of the old site: gone within {END_SECONDS:g} s of the first refusal ({told.evidence})", told.in_time
    )


def old_site_learns(rehearsal: Rehearsal) -> None:
    """The old site comes back as standby while its processes are at work: its own database tells them that they are
    old. Before that nobody has, where the receiver does not refuse older senders: the gate alone kept them silent.
    """
    if rehearsal.departing is None or not rehearsal.departing.left:
        return
    site, outside, copied_at = rehearsal.standby, rehearsal.accepted(), 0.0
    left = {one.part for one in rehearsal.departing.left}

    def hear(step: str, done: bool) -> None:
        nonlocal copied_at
        if (step, done) == (COPY, False):
            copied_at = time.time()  # until then a sender could be refused by the receiver only

    rehearsal.processes[site].change_role()
    rejoin(rehearsal, site, hear)
    promise_departure(rehearsal, left, copied_at)
    rehearsal.promise("nothing leaves while they end", rehearsal.accepted() == outside)


def is_exposed(rehearsal: Rehearsal) -> bool:
    """Whether the active site works alone, by its own epoch."""
    with session(rehearsal.database, Deadline.after(5)) as connection:
        return lineage.is_exposed(connection)


def current_epoch(rehearsal: Rehearsal) -> EpochRow:
    """As the database of the active site has it."""
    with session(rehearsal.database, Deadline.after(5)) as connection:
        return lineage.read_standing(connection).lineage.current
