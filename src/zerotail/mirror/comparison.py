"""The result of comparing a topic with its copy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """Counts of records; a topic and its copy agree when all but the first two are zero."""

    topic: str
    target_topic: str
    records: int
    """Of the source, up to where it was copied."""
    copies: int
    lost: int
    doubled: int
    different: int
    disordered: int
    foreign: int

    @property
    def agrees(self) -> bool:
        """Whether nothing is lost, doubled, different, out of order or foreign."""
        return not (self.lost or self.doubled or self.different or self.disordered or self.foreign)
