"""Which strategy, and why: every one is predicted, those that cannot be used say why, `auto` takes the fastest that
restores the order within the memory.

Times come from the speed at which the log was read a moment ago; writing a record takes about so much longer than
reading it as the constants say. They are estimates, and the report of a run sets the measured figures beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zerotail.core.identity import TopicName
from zerotail.core.restoration import CacheLimit
from zerotail.core.restoration.forecast import Forecast, RestoreStrategy, choose_best, foresee_bounded
from zerotail.core.restoration.journal import Journal
from zerotail.core.restoration.memory import MemoryPlan, plan_memory
from zerotail.errors import Refused
from zerotail.restore.observe import TopicState
from zerotail.restore.report import PartitionPlan

_ORDERING = 1.15
"""Reading in order, as a multiple of reading."""
_WRITING = 2.0
"""Writing a record from the database, as a multiple of reading it."""
_PASSING = 0.9

_BASE_BYTES = 40_000_000
_BYTES_BESIDE_A_VALUE = 60
"""Header, offset and Arrow's own numbers, for a record that waits."""
_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator asked for."""

    strategy: RestoreStrategy = RestoreStrategy.AUTO
    memory_bytes: int = 512_000_000
    cache_messages: int | None = None
    """A limit in messages, instead of one in bytes."""
    spark: bool = False
    into: TopicName | None = None
    """A topic to write the records to, in order."""
    spill: Path | None = None
    """A folder for what a bounded restore has no room for; without one it reads again."""


def plan_partition(journal: Journal, topic: TopicName, state: TopicState, wish: Wish) -> PartitionPlan:
    """Predict every strategy for one partition, and choose; `Refused` when the one that was asked for is unusable."""
    forecasts = (
        _follower(journal, state, wish),
        _mirror_tail(journal, state, wish),
        _unbounded(journal, state, wish),
        _bounded(journal, state, wish),
        _ordered_refill(journal, state, wish),
        _sort(journal, state, wish),
        _skip(journal, state),
    )
    if wish.strategy is RestoreStrategy.AUTO:
        best = choose_best(forecasts, wish.memory_bytes)
        if best is None:
            raise _nothing_fits(forecasts)
        chosen, reason = best.strategy, f"the fastest that restores the order in {wish.memory_bytes:,} bytes"
    else:
        chosen, reason = wish.strategy, "as was asked for"
    return PartitionPlan(
        stage=journal.stage,
        topic=topic,
        partition=journal.partition,
        journaled=len(journal.order),
        segments=len(journal.segments),
        records=state.records,
        missing=state.missing,
        ordered=state.ordered,
        peak_cache_messages=state.disorder.peak_cache_messages,
        forecasts=forecasts,
        chosen=chosen,
        reason=reason,
    )


def require_usable(plan: PartitionPlan) -> None:
    """`Refused` when the chosen strategy cannot be used here."""
    if not plan.forecast.usable:
        raise Refused(
            f"{plan.chosen} cannot be used for partition {plan.partition} of {plan.topic}: {plan.forecast.reason}",
            code="ZT482",
            tries=[f"zerotail restore plan --topic {plan.topic}", "--strategy auto"],
        )


def share_memory(journal: Journal, state: TopicState, wish: Wish) -> tuple[MemoryPlan, CacheLimit]:
    """How a bounded restoration divides what it may use."""
    record_bytes = state.record_bytes + _BYTES_BESIDE_A_VALUE
    # What has left the cache is held back until its segment is proven.
    held_back = max((row.order.records for row in journal.segments), default=0) * record_bytes
    memory = plan_memory(
        _UNLIMITED if wish.cache_messages is not None else wish.memory_bytes,
        journal_bytes=journal.held_bytes + held_back,
        cursors=len(journal.order.producers) + 1,
        record_bytes=record_bytes,
    )
    messages = wish.cache_messages if wish.cache_messages is not None else _UNLIMITED
    return memory, CacheLimit(messages, memory.cache_bytes)


def _skip(journal: Journal, state: TopicState) -> Forecast:
    return Forecast(
        RestoreStrategy.SKIP,
        True,
        "journaled records are passed over, the state comes from the database; no order is restored",
        seconds=state.records * state.seconds_per_record * _PASSING,
        memory_bytes=_BASE_BYTES + journal.held_bytes,
        reads=1.0 if state.records else 0.0,
        writes=0,
        restores_order=False,
    )


def _ordered_refill(journal: Journal, state: TopicState, wish: Wish) -> Forecast:
    strategy = RestoreStrategy.ORDERED_REFILL
    if wish.into is None and not state.ordered:
        return Forecast(
            strategy, False, "the topic holds records in another order than the journal's; name another one by --into"
        )
    writes = len(journal.order) if wish.into is not None else state.missing
    seconds = (writes * _WRITING + len(journal.order)) * state.seconds_per_record
    reason = f"{writes:,} records are written in order from the database, and read back"
    return Forecast(strategy, True, reason, seconds, _BASE_BYTES + journal.held_bytes, 1.0, writes)


def _unbounded(journal: Journal, state: TopicState, wish: Wish) -> Forecast:
    waiting = state.disorder.peak_cache_messages * (state.record_bytes + _BYTES_BESIDE_A_VALUE)
    memory = _BASE_BYTES + journal.held_bytes + 2 * waiting
    reason = f"read once; about {state.disorder.peak_cache_messages:,} records wait at the most"
    if memory > wish.memory_bytes:
        reason += f", which takes more than {wish.memory_bytes:,} bytes"
    return Forecast(
        RestoreStrategy.UNBOUNDED,
        True,
        reason,
        _reading_seconds(journal, state, wish, 1.0),
        memory,
        1.0,
        state.missing,
    )


def _bounded(journal: Journal, state: TopicState, wish: Wish) -> Forecast:
    strategy = RestoreStrategy.BOUNDED
    try:
        memory, limit = share_memory(journal, state, wish)
    except Refused as refused:
        return Forecast(strategy, False, refused.message)
    messages = min(limit.messages, limit.bytes // (state.record_bytes + _BYTES_BESIDE_A_VALUE))
    reading = foresee_bounded(journal.order, state.looks, state.records, messages)
    cached = min(messages, state.disorder.peak_cache_messages)
    waiting = cached * (state.record_bytes + _BYTES_BESIDE_A_VALUE)
    reads = min(1.0, reading.reads) if wish.spill is not None else reading.reads
    seconds = _reading_seconds(journal, state, wish, max(1.0, reads))
    reason = f"at most {messages:,} records wait"
    if not reading.evicted:
        reason += "; read once"
    elif wish.spill is not None:
        reason += f"; what about {reading.evicted} producers have more is spilled to {wish.spill}"
    else:
        reason += f"; about {reading.evicted} producers get a cursor of their own"
    return Forecast(strategy, True, reason, seconds, memory.other_bytes + 2 * waiting, reads, state.missing)


def _sort(journal: Journal, state: TopicState, wish: Wish) -> Forecast:
    if not wish.spark:
        return Forecast(RestoreStrategy.SORT, False, "only Spark sorts: --engine spark")
    seconds = _reading_seconds(journal, state, wish, 3.0)
    return Forecast(RestoreStrategy.SORT, True, "Spark computes positions and sorts", seconds, 0, 1.0, state.missing)


def _mirror_tail(journal: Journal, state: TopicState, wish: Wish) -> Forecast:
    strategy = RestoreStrategy.MIRROR_TAIL
    if not state.records and journal.segments:
        return Forecast(strategy, False, "no mirror has brought anything: the topic is empty")
    if wish.into is not None:
        return Forecast(strategy, False, "it keeps what is in the topic; --into writes another one")
    seconds = state.missing * (_WRITING + _ORDERING) * state.seconds_per_record
    share = state.missing / max(1, state.records + state.missing)
    reason = f"what is there is kept; the {state.missing:,} records that are missing are written, and put in order"
    memory = _BASE_BYTES + journal.held_bytes
    return Forecast(strategy, True, reason, seconds, memory, share, state.missing, restores_order=state.ordered)


def _follower(journal: Journal, state: TopicState, wish: Wish) -> Forecast:
    strategy = RestoreStrategy.FOLLOWER
    if wish.into is not None:
        return Forecast(strategy, False, "it completes the topic itself; --into writes another one")
    if not state.records and journal.segments:
        return Forecast(strategy, False, "no follower has written anything: the topic is empty")
    if not state.ordered:
        return Forecast(strategy, False, "the topic is not in the journal's order")
    seconds = state.missing * _WRITING * state.seconds_per_record
    reason = f"the topic is in order; its last {state.missing:,} records are appended"
    return Forecast(strategy, True, reason, seconds, _BASE_BYTES + journal.held_bytes, 0.0, state.missing)


def _reading_seconds(journal: Journal, state: TopicState, wish: Wish, reads: float) -> float:
    """Complete the log, read it in order, and write the result where that was asked for."""
    written = state.missing + (len(journal.order) if wish.into is not None else 0)
    read = (state.records + state.missing) * reads * _ORDERING
    return (read + written * _WRITING) * state.seconds_per_record


def _nothing_fits(forecasts: tuple[Forecast, ...]) -> Refused:
    said = "; ".join(f"{one.strategy}: {one.reason}" for one in forecasts if not one.usable)
    return Refused(
        f"no strategy restores the order within the memory ({said})",
        code="ZT483",
        tries=["--memory with more", "--strategy ordered-refill --into NEW"],
    )
