"""What a drill answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from zerotail.private import write_file


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
    """Instructions that were acknowledged behind the gate, since the two sites were made: in a series they are the same
    for several drills, and the judges look at all of it.
    """
    received: int
    """Messages that arrived, counted likewise."""
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
    count: int | None = None
    """Instructions in all, if that was asked for."""
    own_submitted: int | None = None
    """Of `submitted`, those of this drill: behind the end of the one before it. None where there is no such thing."""
    own_received: int | None = None
    began_at: str = ""
    """Date and time with offset; since then the business submits for this drill."""
    ended_at: str = ""


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


def write_result(path: Path, schema: str, content: DrillResult | DrillSummary, **more: object) -> None:
    """Leave a result as a file: what the command answers with `--json`, schema and all, and perhaps more."""
    fields: dict[str, Any] = msgspec.to_builtins(content)
    write_file(path, msgspec.json.encode({"schema": f"zerotail/{schema}/1", **fields, **more}) + b"\n")
