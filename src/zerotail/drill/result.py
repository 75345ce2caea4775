"""What a drill answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FaultTold:
    """A fault, whether it bit, and how we know."""

    name: str
    bit: bool
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrillResult:
    """`zerotail drill run`; seconds are None where the scenario has no such moment."""

    scenario: str
    seed: int
    verdict: str
    lost: int
    duplicated: int
    reordered: int
    in_doubt: int
    submitted: int
    """Instructions that were acknowledged behind the gate."""
    received: int
    detect_seconds: float | None
    promote_seconds: float | None
    takeover_seconds: float | None
    """From the command to the first accepted message whose instruction was given after the fault."""
    outage_seconds: float | None
    """From the fault to that message."""
    faults: tuple[FaultTold, ...]
    history: str
    """The folder with one file per witness."""
    report: str
    receiver: str
    rate: float
    seconds: float
    strategy: str = "auto"
    rebuild_state: bool = False
    """Whether a takeover made the state anew from the journal."""
    allowed: str = ""
    """What was stated beforehand."""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DrillLine:
    """One run of many."""

    scenario: str
    receiver: str
    seed: int
    verdict: str
    seconds: float
    outage_seconds: float | None
    folder: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class DrillSummary:
    """`zerotail drill run all` and `zerotail drill run random`."""

    seed: int
    runs: int
    passed: int
    failed: int
    undecided: int
    lines: tuple[DrillLine, ...]
