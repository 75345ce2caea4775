"""What the durability drill answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellFound:
    """One cell under one fault, over all rounds."""

    cell: str
    acks: str
    min_insync: int
    unclean: bool
    idempotent: bool
    flushed: bool
    fault: str
    written: int
    acknowledged: int
    found: int
    """Records that are in the log in the end, each counted once."""
    lost: int
    """Acknowledged, and not in the log in the end."""
    repeated: int
    """There once more than written."""
    rounds_with_loss: int
    worst_round: int
    """The most that one round has lost."""
    promised: bool
    """Whether nothing may be lost here."""


@dataclass(frozen=True, slots=True)
class FaultPlayed:
    """One fault, again and again."""

    name: str
    summary: str
    rounds: int
    kills: int
    """Of a leader's process."""
    bit: int
    """Rounds in which the fault was seen to take effect."""
    evidence: tuple[str, ...]
    """Of the first round."""
    seconds: float


@dataclass(frozen=True, slots=True)
class DurabilityResult:
    """`zerotail bench durability`."""

    verdict: str
    reasons: tuple[str, ...]
    kills: int
    """Of leaders, by `kill -9`, the power losses included."""
    leaders_lost: int
    """Partitions whose leader was killed or frozen, over all rounds and cells."""
    rate: float
    """Records a second and cell."""
    partitions: int
    seconds: float
    versions: dict[str, str]
    faults: tuple[FaultPlayed, ...]
    cells: tuple[CellFound, ...]
    reached: dict[str, bool]
