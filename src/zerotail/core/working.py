"""Which of two databases is the one that works, when both say so.

1. One that knows the other's epoch goes on from it: the other is the past, whatever it believes.
2. One that opened an epoch behind the gate and never went live has released nothing.
3. Two that do not know each other are two histories. No number says which of them is the true one: an operator does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zerotail.core.epoch import Durability, Lineage, Phase
from zerotail.core.identity import Epoch, SiteName


@dataclass(frozen=True, slots=True)
class Working:
    """A site that works, by what its own database says."""

    epoch: Epoch
    known: frozenset[int]
    """All epochs that its database knows."""
    idle: bool
    """It is behind the gate, and has not gone live in this epoch."""

    @classmethod
    def of(cls, lineage: Lineage) -> Working:
        """By its epochs."""
        row = lineage.current
        idle = row.phase is Phase.OPENED and row.durability is Durability.GATED
        return cls(row.epoch, frozenset(one.epoch for one in lineage.rows), idle)


def choose_working(working: Mapping[SiteName, Working]) -> tuple[SiteName, ...]:
    """The site that works: one name, none, or two of two histories."""
    left = [
        site
        for site, one in working.items()
        if not any(one.epoch in other.known for name, other in working.items() if name != site)
    ]
    if len(left) > 1:
        left = [site for site in left if not working[site].idle] or left
    return tuple(left)


def told_histories(working: Mapping[SiteName, Working]) -> str:
    """What is wrong with two histories, in one line."""
    each = ", ".join(f"{site} works in epoch {one.epoch}" for site, one in working.items())
    return f"TWO HISTORIES: {each}, and neither knows the other's; which one lasts is for an operator to decide"
