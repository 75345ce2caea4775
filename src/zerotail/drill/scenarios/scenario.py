"""A scenario: a story on the rehearsal's stage that says beforehand what may be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zerotail.core.epoch import Durability, EpochRow
from zerotail.deadline import Deadline
from zerotail.drill.rehearsal import Rehearsal
from zerotail.ports import End
from zerotail.postgres.connection import session
from zerotail.postgres.lineage import read_standing

MESSAGES = 500
"""So many new ones show that the flow goes on."""
SUPERSEDED = End.SUPERSEDED.value
END_SECONDS = 5.0
"""Processes that were told that they are old end within this time."""


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

    @property
    def is_planned(self) -> bool:
        """Whether roles change without any loss: then nothing may be in doubt, whatever the receiver remembers."""
        return not self.faults

    @property
    def allowed(self) -> str:
        """What may be found, by receiver class."""
        if self.is_planned:
            return "all receiver classes: nothing lost, duplicated, reordered or in doubt"
        return "R0, R1, R2: nothing lost, duplicated, reordered or in doubt; R3: listed doubts only"


def is_exposed(stage: Rehearsal) -> bool:
    """Whether the active site works alone, by its own epoch."""
    return current_epoch(stage).durability is Durability.EXPOSED


def current_epoch(stage: Rehearsal) -> EpochRow:
    """As the database of the active site has it."""
    with session(stage.database, Deadline.after(5)) as connection:
        return read_standing(connection).lineage.current
