"""Logs made of lists, the notes' first program as a reference, and disordered logs to restore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from property.interleavings import interleavings, vectors
from zerotail.core.identity import Offset, ProducerNumber, Serial
from zerotail.core.order import Order, Runs
from zerotail.core.record import encode_column
from zerotail.core.restoration import Batch, CacheLimit, Statistics

Record = tuple[int, int]
"""Producer and serial; a foreign record is (-1, …)."""
FOREIGN: Record = (-1, 0)

A, B, C = ProducerNumber(1), ProducerNumber(2), ProducerNumber(3)
NOTES = Order(Runs.of([(A, 2), (B, 2), (A, 1)]))
"""The active site's order in the notes: A1 A2 B1 B2 A3."""
DISORDERED: list[Record] = [(B, 1), (B, 2), (A, 1), (A, 2), (A, 3)]
"""The standby's log in the notes."""
LARGE = CacheLimit(messages=10**6, bytes=10**9)


def numbers(*each: int) -> np.typing.NDArray[np.int64]:
    return np.array(each, dtype=np.int64)


def value_of(record: Record) -> bytes:
    return b"%d/%d" % record


def names(records: Sequence[Record]) -> list[bytes]:
    return [value_of(record) for record in records]


def payload_of(records: Sequence[Record], offsets: Sequence[int]) -> pa.RecordBatch:
    """The records as Kafka would give them; values tell them apart, headers say who they are."""
    headers = [encode_column(1, p, s, 0)[0].as_py() if p >= 0 else None for p, s in records]
    return pa.record_batch(
        {
            "zt": pa.array(headers, type=pa.binary()),
            "offset": pa.array(offsets, type=pa.int64()),
            "value": pa.array([value_of(record) for record in records], type=pa.binary()),
        }
    )


@dataclass
class ListLog:
    """A log of records, cut into batches; it remembers how often and where it was opened."""

    rows: list[Record]
    cuts: list[int] = field(default_factory=list)
    """How many rows the batches have, again and again; one batch if there are none."""
    offset_step: int = 1
    """Offsets are not dense: every this many."""
    opened: list[Offset | None] = field(default_factory=list)

    @property
    def records(self) -> int:
        return len(self.rows)

    def open(self, offset: Offset | None) -> Iterator[Batch]:
        self.opened.append(offset)
        begin = 0 if offset is None else -(-offset // self.offset_step)
        return self._batches(begin)

    def _batches(self, begin: int) -> Iterator[Batch]:
        turn = 0
        while begin < len(self.rows):
            rows = self.cuts[turn % len(self.cuts)] if self.cuts else len(self.rows)
            part = self.rows[begin : begin + rows]
            yield Batch.of(payload_of(part, [self.offset_step * (begin + row) for row in range(len(part))]))
            begin, turn = begin + rows, turn + 1


@dataclass
class ListSpill:
    """A place to spill to, in lists."""

    records: dict[ProducerNumber, list[pa.RecordBatch]] = field(default_factory=dict)
    kept: int = 0

    def put(self, producer: ProducerNumber, records: pa.RecordBatch) -> None:
        self.records.setdefault(producer, []).append(records)
        self.kept += records.num_rows

    def take(self, producer: ProducerNumber) -> pa.RecordBatch | None:
        waiting = self.records.get(producer)
        return waiting.pop(0) if waiting else None


def values_of(batches: Iterator[pa.RecordBatch]) -> list[bytes]:
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def values_in_order(order: Order) -> list[bytes]:
    producers, serials = order.records_between(order.first_position, order.next_position)
    return [value_of(record) for record in zip(producers.tolist(), serials.tolist(), strict=True)]


def by_the_notes(order: Order, rows: list[Record]) -> Statistics:
    """The notes' first program: a dictionary as the cache, one record after another."""
    cache: set[Record] = set()
    seen = dict(order.vector_before)
    position, first_hits, peak = order.first_position, 0, 0
    for producer, serial in rows:
        number = ProducerNumber(producer)
        if position == order.next_position:
            break
        if serial != seen.get(number, -9) + 1 or serial > order.vector_after[number]:
            continue
        seen[number] = Serial(serial)
        if order.record_at(position) == (producer, serial):
            first_hits += 1
            position += 1  # type: ignore[assignment]
            while position < order.next_position and order.record_at(position) in cache:
                cache.remove(order.record_at(position))
                position += 1  # type: ignore[assignment]
        else:
            cache.add((producer, serial))
            peak = max(peak, len(cache))
    total = position - order.first_position
    return Statistics(first_hits=first_hits, cache_hits=total - first_hits, peak_cache_messages=peak)


@st.composite
def refilled(draw: st.DrawFn, max_records: int = 120) -> tuple[Order, ListLog]:
    """An order, and a log that holds its records: each producer's in serial order, otherwise anyhow, with
    repeats, records sent again after a gap, records beyond the order's end, of strangers, and foreign ones in
    between."""
    each = draw(interleavings(max_records=max_records))
    order = Order(Runs.of_records(each), before=draw(vectors(each)), first_position=draw(st.integers(0, 99)))
    queues = {
        producer: _written(draw, order.vector_before[producer], order.vector_after[producer])
        for producer in order.producers
    }
    if draw(st.booleans()):
        stranger = next(number for number in range(99) if number not in order.producers)
        queues[ProducerNumber(stranger)] = [1, 2]
    turns = [producer for producer, serials in queues.items() for _ in serials]
    kind = draw(st.sampled_from(["shuffled", "blocks", "reversed blocks", "as ordered"]))
    if kind == "shuffled":
        turns = draw(st.permutations(turns))
    elif kind == "reversed blocks":
        turns = turns[::-1]
    elif kind == "as ordered":
        turns = [*map(ProducerNumber, each), *turns]
    rows: list[Record] = [(producer, queues[producer].pop(0)) for producer in turns if queues[producer]]
    for place in draw(st.lists(st.integers(0, len(rows)), max_size=3)):
        rows.insert(place, FOREIGN)
    cuts = draw(st.lists(st.integers(1, 50), max_size=4))
    return order, ListLog(rows, cuts, offset_step=draw(st.sampled_from([1, 3])))


def _written(draw: st.DrawFn, before: int, after: int) -> list[int]:
    """What a producer wrote: its serials, perhaps some again, or with a gap that it closed by going back."""
    serials = [*range(before + 1, after + 1)]
    fault = draw(st.sampled_from(["none", "none", "repeats", "gap", "beyond"]))
    if fault == "repeats":
        again = draw(st.integers(0, len(serials)))
        since = draw(st.integers(0, again))
        return [*serials[:again], *serials[since:]]
    if fault == "gap":
        lost = draw(st.integers(0, len(serials)))
        return [*serials[:lost], *serials[lost + 1 :], *serials[lost:]]
    if fault == "beyond":
        return [*([before] if before else []), *serials, after + 1, after + 2]
    return serials
