"""What benchmarks answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlowResult:
    """`zerotail bench flow`: medians over the rounds, and the rounds themselves."""

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
    reached: bool
