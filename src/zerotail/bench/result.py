"""What benchmarks answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One number of partitions: medians over the rounds, and the rounds themselves."""

    records_per_second: float
    baseline_records_per_second: float
    ratio: float
    latency_p50_seconds: float
    latency_p99_seconds: float
    latency_records_per_second: float
    count: int
    accounts: int
    partitions: int
    rounds: tuple[dict[str, float], ...]


@dataclass(frozen=True, slots=True)
class FlowBench:
    """`zerotail bench flow`."""

    cases: tuple[FlowResult, ...]
    """By number of partitions."""
    reached: dict[str, bool]


@dataclass(frozen=True, slots=True)
class ChecksRound:
    """The same load with the checks and without."""

    records_per_second: float
    unchecked_per_second: float
    processor_seconds: float
    unchecked_processor_seconds: float

    @property
    def processor_ratio(self) -> float:
        """What is needed with the checks, against what is needed without."""
        return self.processor_seconds / self.unchecked_processor_seconds


@dataclass(frozen=True, slots=True)
class ChecksCost:
    """`zerotail bench checks`: medians over the rounds, and the rounds themselves."""

    count: int
    processor_percent: float
    """By how much more processor time a record takes."""
    throughput_percent: float
    """By how much fewer records a second pass."""
    rounds: tuple[ChecksRound, ...]
    reached: dict[str, bool]


@dataclass(frozen=True, slots=True)
class JournalCost:
    """`zerotail bench journal`: per message, for the order alone."""

    messages: int
    messages_per_segment: int
    bytes_per_message: float
    bytes_per_message_without_page_images: float
    row_per_message_bytes: float
    """The same order stored as one row per message."""
    seconds_per_message: float
    row_per_message_seconds: float
    order_bytes_per_segment: float
    reached: dict[str, bool]


@dataclass(frozen=True, slots=True)
class TakeoverRound:
    """One loss of a site."""

    history: int
    takeover_seconds: float
    """From the command to the first accepted message whose instruction was given after the fault."""
    outage_seconds: float
    """From the fault to that message."""
    promote_seconds: float
    refilled: int
    """Records that were appended to the survivor's topics before its stages went live."""
    read: int
    """Records of these topics that were read before its stages went live."""
    steps: dict[str, float]
    """Seconds of each step of the takeover, and from its end to the first new message."""


@dataclass(frozen=True, slots=True)
class JudgedHistory:
    """What the receiver counted over all takeovers of one length of history."""

    history: int
    lost: int
    duplicated: int
    exactly_once: bool
    """Nothing of that, and nothing out of order."""


@dataclass(frozen=True, slots=True)
class MirroredRound:
    """One loss of a site of the same business with a plain MirrorMaker 2, counted by the receiver."""

    submitted: int
    """Payments that Kafka acknowledged, at one site or the other."""
    lost: int
    duplicated: int
    takeover_seconds: float
    """From the operator's first act to the first message of a payment that was given after the fault."""
    outage_seconds: float


@dataclass(frozen=True, slots=True)
class TakeoverResult:
    """`zerotail bench takeover`: over all rounds, and by length of history."""

    strategy: str
    takeover_seconds_median: float
    takeover_seconds_worst: float
    outage_seconds_median: float
    medians_by_history: dict[str, float]
    growth: float
    """The median over the longest history as a multiple of that over the shortest."""
    lost: int
    """Over all takeovers, counted by the receiver; so is the next one."""
    duplicated: int
    rounds: tuple[TakeoverRound, ...]
    judged: tuple[JudgedHistory, ...]
    mirrored: tuple[MirroredRound, ...]
    """The same business with a plain MirrorMaker 2, where that was asked for."""
    reached: dict[str, bool]


@dataclass(frozen=True, slots=True)
class MirrorResult:
    """`zerotail bench mirror`: medians by engine and partitions, and the rounds themselves."""

    count: int
    size: int
    records_per_second: dict[str, float]
    """By engine and number of partitions: `spark-1`, `mm2-4`, `mm2-tuned-4`, `mm2-interval-4`."""
    cpu_microseconds: dict[str, float]
    """Of processor time per record, by the same."""
    ratios: dict[str, float]
    """Spark to MirrorMaker 2, by number of partitions."""
    ratios_tuned: dict[str, float]
    """The same to one with the client settings that `zerotail mirror generate` gives it."""
    ratios_interval: dict[str, float]
    """The same to one that, on top of these, ends its transactions by the clock."""
    lag_p99_seconds: float
    lag_records_per_second: float
    rounds: tuple[dict[str, float | str | bool], ...]
    reached: dict[str, bool]
