"""What a copy holds, in words: the numbers that stand in a refusal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TypeVar

from zerotail.core.completeness import told_position
from zerotail.core.identity import Lsn, SiteName
from zerotail.core.staleness import CopyAge
from zerotail.core.staleness import told_age as spent
from zerotail.postgres.holding import Applied, Emitted, Holding

T = TypeVar("T")
_LISTED = 8
"""More than this many partitions are summed up."""


def told_holding(flushed: Lsn, holding: Holding | None) -> tuple[str, ...]:
    """One line each for the epoch, the log, every stage and every channel."""
    log = f"the log up to {told_position(flushed)}"
    if holding is None:
        return (log, "its stages and channels could not be read")
    since = [f"the epoch, exposed since {_time(holding.opened_at)}"] if holding.opened_at else []
    last = f", the last change of {_time(holding.changed_at)}" if holding.changed_at else ""
    stages = [
        f"stage {stage}: {_summed(list(of_stage), lambda one: one.next_position, _applied, 'records')}"
        for stage, of_stage in groupby(holding.applied, lambda one: one.stage)
    ]
    lanes = sorted(holding.emitted, key=lambda one: (one.channel, one.partition, one.target))
    channels = [
        f"channel {channel}: {_summed(list(of_channel), lambda one: one.number, _emitted, 'messages')}"
        for channel, of_channel in groupby(lanes, lambda one: one.channel)
    ]
    return (*since, f"{log}{last}", *stages, *channels)


def told_age(site: SiteName, flushed: Lsn, age: CopyAge, now: datetime) -> tuple[str, ...]:
    """When the last change and the last sign of life came that a copy holds, and up to where its log reaches."""

    def since(seconds: float | None) -> str:
        return "unknown" if seconds is None else f"{_time(now - timedelta(seconds=seconds))}, {spent(seconds)} ago"

    return (
        f"{site}: the log up to {told_position(flushed)}, its last change of {since(age.changed)}",
        f"{site}: its last heartbeat of {since(age.heard)}",
    )


def _applied(one: Applied) -> str:
    return (
        f"partition {one.partition} up to position {one.next_position - 1}"
        if one.next_position
        else (f"partition {one.partition} nothing")
    )


def _emitted(one: Emitted) -> str:
    target = f" to {one.target}" if one.target else ""
    return f"partition {one.partition}{target} up to number {one.number}"


def _summed(each: list[T], count: Callable[[T], int], told: Callable[[T], str], what: str) -> str:
    """Every one, or when they are many how many and how much."""
    if len(each) <= _LISTED:
        return ", ".join(map(told, each))
    counts = [count(one) for one in each]
    return f"{len(each)} partitions with {min(counts)} to {max(counts)} {what}, {sum(counts)} in all"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
