"""The state of a log, from a few looks: how much of the journal it holds, how far from its order, how fast it reads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from zerotail.core.identity import Offset, Position, ProducerNumber, Serial
from zerotail.core.order import BEFORE, BEYOND, Order
from zerotail.core.restoration.batch import Batch
from zerotail.core.restoration.forecast import Disorder, Look, measure_disorder, plan_looks
from zerotail.kafka.log import MissingTopicError
from zerotail.kafka.partition_log import PartitionLog

LOOKS = 48
_ROWS_PER_LOOK = 400
_TIMED_ROWS = 20_000
_USUAL_SECONDS_PER_RECORD = 2.5e-6
_USUAL_RECORD_BYTES = 200
_Seen = dict[ProducerNumber, list[tuple[int, Serial]]]


@dataclass(frozen=True, slots=True)
class TopicState:
    """What was seen of a log."""

    exists: bool
    records: int
    """Offsets in the log; markers of transactions count."""
    last: dict[ProducerNumber, Serial]
    """The last serial of each producer of the journal."""
    missing: int
    """Journaled records that the log lacks."""
    ordered: bool
    """Whether every look found the journal's order."""
    complete_to: Position
    """With `ordered`, the position behind the last record."""
    disorder: Disorder
    looks: tuple[Look, ...]
    record_bytes: int
    seconds_per_record: float


def observe_topic(log: PartitionLog, order: Order) -> TopicState:
    """Look at a log; a topic that does not exist is an empty one."""
    try:
        records = log.records
    except MissingTopicError:
        return _empty(order, exists=False)
    if not records:
        return _empty(order, exists=True)
    first, _ = log.bounds
    batches = [*_look(log, first, records)]
    seen = _seen(order, batches, first)
    last = _last_serials(log, order, seen)
    for producer, serial in last.items():
        seen.setdefault(producer, []).append((records, serial))
    looks = plan_looks(order, seen, records, LOOKS)
    missing = sum(order.vector_after[p] - max(last.get(p, 0), order.vector_before[p]) for p in order.producers)
    positions = [order.positions(batch.producers, batch.serials) for batch in batches]
    size, seconds = _measure_reading(log)
    return TopicState(
        exists=True,
        records=records,
        last=last,
        missing=missing,
        ordered=_ordered(order, positions),
        complete_to=_behind(order, last),
        disorder=measure_disorder(order, looks, records),
        looks=tuple(looks),
        record_bytes=size,
        seconds_per_record=seconds,
    )


def _look(log: PartitionLog, first: Offset, records: int) -> Iterator[Batch]:
    """A few records at each of many places; a short log is read as a whole."""
    if records <= LOOKS * _ROWS_PER_LOOK:
        for batch in log.open(None):
            yield from (batch.slice(row, _ROWS_PER_LOOK) for row in range(0, len(batch), _ROWS_PER_LOOK))
        return
    offsets = sorted({first + records * step // LOOKS for step in range(LOOKS)} | {first + records - _ROWS_PER_LOOK})
    yield from log.look_at(offsets, _ROWS_PER_LOOK)


def _empty(order: Order, *, exists: bool) -> TopicState:
    return TopicState(
        exists=exists,
        records=0,
        last={},
        missing=len(order),
        ordered=True,
        complete_to=order.first_position,
        disorder=Disorder(0, 0),
        looks=(),
        record_bytes=_USUAL_RECORD_BYTES,
        seconds_per_record=_USUAL_SECONDS_PER_RECORD,
    )


def _seen(order: Order, batches: Sequence[Batch], first: int) -> _Seen:
    """Where each producer was seen, and with which serial; records behind the journal's end are none of ours."""
    seen: _Seen = {}
    for batch in batches:
        for producer in order.producers:
            mine = np.flatnonzero((batch.producers == producer) & (batch.serials <= order.vector_after[producer]))
            if len(mine):
                place, serial = int(batch.offsets[mine[-1]]) - first, int(batch.serials[mine[-1]])
                seen.setdefault(producer, []).append((place, Serial(serial)))
    return seen


def _last_serials(log: PartitionLog, order: Order, seen: _Seen) -> dict[ProducerNumber, Serial]:
    """The last serial of each producer, exactly: where the looks leave doubt, the log is read on from there."""
    first, _ = log.bounds
    last = {producer: max(serial for _, serial in points) for producer, points in seen.items()}

    def doubtful() -> set[ProducerNumber]:
        return {p for p in order.producers if last.get(p, order.vector_before[p]) < order.vector_after[p]}

    open_questions = doubtful()
    if not open_questions:
        return last
    start = min(seen[p][-1][0] if p in seen else 0 for p in open_questions)
    for batch in log.open(Offset(first + start)):
        for producer in sorted(open_questions):
            mine = batch.serials[batch.producers == producer]
            mine = mine[mine <= order.vector_after[producer]]
            if len(mine):
                last[producer] = Serial(max(last.get(producer, 0), int(mine.max())))
        open_questions = doubtful()
        if not open_questions:
            break
    return last


def _ordered(order: Order, positions: Sequence[np.ndarray]) -> bool:
    """Whether what every look found is a piece of the journal's order, and one look begins behind the other."""
    reached = order.first_position - 1
    for place, found in enumerate(positions):
        inside = found[found != BEYOND]
        if (found == BEFORE).any() or (len(inside) and (np.diff(inside) != 1).any()):
            return False
        if len(inside):
            if (place == 0 and inside[0] != order.first_position) or inside[-1] < reached:
                return False
            reached = Position(int(inside[-1]))
    return True


def _behind(order: Order, last: dict[ProducerNumber, Serial]) -> Position:
    """The position behind the last record, when the log is in order."""
    places = [order.find_position(producer, serial) for producer, serial in last.items()]
    return Position(max((place + 1 for place in places if place is not None), default=order.first_position))


def _measure_reading(log: PartitionLog) -> tuple[int, float]:
    """Mean bytes of a value, and seconds for each record, from the first records of the log."""
    first, _ = log.bounds
    rows = size = 0
    began = None
    for messages in log.poll(None, Offset(first + _TIMED_ROWS)):
        if began is None:
            began, rows = time.perf_counter(), -len(messages)  # the first poll waits for the client to connect
        batch = log.batch_of(messages)
        rows += len(messages)
        size = batch.payload.column("value").nbytes // max(1, len(batch))
    if began is None or rows < ROWS_TO_TELL:
        return size or _USUAL_RECORD_BYTES, _USUAL_SECONDS_PER_RECORD
    return size, (time.perf_counter() - began) / rows


ROWS_TO_TELL = 2_000
"""Fewer than this say nothing about the speed."""
