"""What `zerotail bench restore` answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the rounds."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class RestoreRow:
    """One method over one log."""

    method: str
    """unbounded, bounded; spilled is bounded with the rest on a local disk; checked hashes every value as well;
    dictionary and rewinding are the notes' programs.
    """
    cache: int | None
    """The limit, in messages."""
    seconds: Spread
    ratio: Spread
    """To the plain read of the same log in the same round, by the clock."""
    cpu_ratio: Spread
    """The same of processor time, which does not depend on who else uses the machine."""
    polls: int
    first_hits: int
    cache_hits: int
    peak_cache: int
    cache_ratio: float
    reads: float
    """How many times the log was read."""
    peak_memory_bytes: int
    """By how much the process grew, as the operating system saw it."""
    records: int
    """That left, in order."""
    finished: bool


@dataclass(frozen=True, slots=True)
class RestoreCase:
    """One log."""

    records: int
    interleaving: str
    producers: int
    rounds: int
    plain_seconds: Spread
    rows: tuple[RestoreRow, ...]


@dataclass(frozen=True, slots=True)
class RefillMeasured:
    """The ordered refill beside plain producing, in records a second."""

    records: int
    producers: int
    records_per_second: Spread
    plain_records_per_second: Spread
    ratio: Spread
    peak_memory_bytes: int


@dataclass(frozen=True, slots=True)
class SparkRound:
    """Seconds of one round through Spark."""

    plain: float
    in_order: float
    sorted: float


@dataclass(frozen=True, slots=True)
class SparkMeasured:
    """Restoring through Spark beside a plain read through Spark; one session, one partition."""

    records: int
    interleaving: str
    producers: int
    plain_seconds: Spread
    seconds: Spread
    sorted_seconds: Spread
    ratio: Spread
    """In order against plain."""


@dataclass(frozen=True, slots=True)
class RestoreBench:
    """`zerotail bench restore`."""

    cases: tuple[RestoreCase, ...]
    refill: RefillMeasured | None
    spark: SparkMeasured | None
    reached: dict[str, bool]
