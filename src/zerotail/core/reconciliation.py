"""What a reconciliation answers: is everything that came in applied exactly once, and do both sites say so?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["missing", "doubled", "lost", "broken", "changed", "absent", "diverged"]
"""
missing   a row at or before the vector that no segment took
doubled   a row that was taken more than once
lost      a segment took it, and it has no row
broken    the journal does not hang together at this segment
changed   both sites have the row, with different values
absent    one site has the row, the other lacks it and has later ones
diverged  both sites have the segment, with different chains, or one of them lacks it
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that should not be, and where; what does not apply is None."""

    kind: Kind
    stage: str | None
    partition: int
    segment: int | None
    position: int | None
    producer: int | None
    serial: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Counts over all stages and partitions, and the first differences."""

    rows: int
    """Instructions, and messages of one stage to another."""
    applied: int
    """Records in the journal."""
    waiting: int
    """Rows behind the vectors: nobody has taken them yet."""
    segments: int
    compared: bool
    """Whether the other site was looked at."""
    counts: Mapping[Kind, int]
    """Differences by kind; only those that occur."""
    differences: tuple[Difference, ...]
    """The first of them."""

    @property
    def ok(self) -> bool:
        """Whether there is no difference."""
        return not self.counts
