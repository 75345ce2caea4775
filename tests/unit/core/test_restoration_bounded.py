"""The bounded restoration by example: its limits, its cursors, its counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from property.logs import (
    DISORDERED,
    FOREIGN,
    LARGE,
    NOTES,
    A,
    B,
    C,
    ListLog,
    Record,
    names,
    payload_of,
    value_of,
    values_in_order,
    values_of,
)
from zerotail.core.identity import Offset
from zerotail.core.order import Order, Runs
from zerotail.core.restoration import Batch, CacheLimit, bounded, scatter, unbounded
from zerotail.errors import Misused, Refused

pytestmark = pytest.mark.fast


def test_a_limit_below_nothing_is_misused() -> None:
    for messages, size in ((-1, 5), (5, -1)):
        with pytest.raises(Misused, match=f"limited to {messages} messages and {size} bytes"):
            CacheLimit(messages, size)
    assert CacheLimit(0, 0).messages == 0


def test_disorder_that_fits_the_limit_takes_one_read() -> None:
    log = ListLog(DISORDERED, [2])
    restored = bounded(NOTES, log, CacheLimit(messages=2, bytes=10**6))
    assert values_of(restored) == values_in_order(NOTES)
    assert (log.opened, restored.statistics.reads, restored.statistics.peak_cache_messages) == (
        [None],
        1.0,
        2,
    )


def test_the_producer_that_fills_the_cache_most_is_evicted_and_read_again_from_its_oldest_record() -> None:
    log = ListLog([(C, 1), *DISORDERED], [2], offset_step=10)
    order = Order(Runs.of([(A, 2), (B, 2), (A, 1), (C, 1)]))
    restored = bounded(order, log, CacheLimit(messages=2, bytes=10**6))
    assert values_of(restored) == values_in_order(order)
    assert log.opened == [None, 10]
    found = restored.statistics
    assert (found.first_hits, found.cache_hits, found.peak_cache_messages) == (4, 2, 2)
    assert (found.records_read, found.partition_records, found.polls) == (6 + 2, 6, 3 + 1)


def test_the_limit_in_bytes_evicts_too_and_by_bytes() -> None:
    order = Order(Runs.of([(A, 1), (B, 3), (C, 1)]))
    small = payload_of([(B, 1), (B, 2), (B, 3)], [0, 1, 2])
    large = payload_of([(C, 1)], [3]).set_column(2, "value", pa.array([b"x" * 1000]))
    last = payload_of([(A, 1)], [4])

    @dataclass
    class Three:
        opened: list[Offset | None]
        records: int = 5

        def open(self, offset: Offset | None) -> Iterator[Batch]:
            self.opened.append(offset)
            return (
                Batch.of(part) for part in (small, large, last) if offset is None or part.column(1)[0].as_py() >= offset
            )

    log = Three([])
    restored = bounded(order, log, CacheLimit(messages=100, bytes=900))
    assert values_of(restored) == [*names([(A, 1), (B, 1), (B, 2), (B, 3)]), b"x" * 1000]
    assert log.opened == [None, 3]
    assert small.nbytes <= restored.statistics.peak_cache_bytes <= 900


def test_an_evicted_producer_without_a_kept_record_is_read_from_the_first_of_the_batch() -> None:
    order = Order(Runs.of([(A, 100), (B, 2)]))
    rows: list[Record] = [(B, 1), (B, 2), *((A, serial) for serial in range(1, 101))]
    sizes = [1000, 1000] + [10] * 100
    values = pa.array([value_of(record).ljust(size) for record, size in zip(rows, sizes, strict=True)])
    batch = Batch.of(payload_of(rows, [*range(102)]).set_column(2, "value", values))

    class OneBatch:
        records = 102
        opened: list[Offset | None] = []

        def open(self, offset: Offset | None) -> Iterator[Batch]:
            self.opened.append(offset)
            return iter([batch.slice(offset or 0)])

    log = OneBatch()
    limit = CacheLimit(messages=10**6, bytes=2000)
    assert limit.step(batch) == 3
    restored = bounded(order, log, limit)
    assert [value.rstrip() for value in values_of(restored)] == values_in_order(order)
    assert log.opened == [None, 0]


def test_without_any_room_every_producer_gets_a_cursor_of_its_own() -> None:
    log = ListLog(DISORDERED, [3])
    restored = bounded(NOTES, log, CacheLimit(0, 0))
    assert values_of(restored) == values_in_order(NOTES)
    assert (restored.statistics.peak_cache_messages, restored.statistics.peak_cache_bytes) == (0, 0)
    assert (restored.statistics.first_hits, restored.statistics.cache_hits) == (5, 0)
    assert log.opened == [None, 0]


def test_without_any_room_a_log_in_order_still_takes_one_read() -> None:
    rows: list[Record] = [(A, 1), (A, 2), (B, 1), (B, 2), (A, 3)]
    log = ListLog(rows, [2])
    restored = bounded(NOTES, log, CacheLimit(0, 0))
    assert values_of(restored) == names(rows)
    assert (log.opened, restored.statistics.reads) == ([None], 1.0)


def test_what_is_next_passes_before_anyone_is_evicted() -> None:
    order = Order(Runs.of([(A, 1), (B, 1), (A, 1)]))
    log = ListLog([(A, 1), (A, 2), (B, 1)])
    restored = bounded(order, log, CacheLimit(messages=0, bytes=10**6))
    assert values_of(restored) == values_in_order(order)
    assert log.opened == [None, 1]


def test_a_batch_larger_than_the_limit_is_taken_in_by_steps() -> None:
    order = Order(Runs.of([(A, 1), (B, 1)] * 500))
    rows: list[Record] = [
        record for s in range(1, 501, 10) for p in (B, A) for record in ((p, s + i) for i in range(10))
    ]
    log = ListLog(rows)
    restored = bounded(order, log, CacheLimit(messages=16, bytes=10**6))
    assert values_of(restored) == values_in_order(order)
    assert (log.opened, restored.statistics.peak_cache_messages) == ([None], 10)


def test_a_lag_cursor_counts_only_repeats_that_the_lead_has_not_counted() -> None:
    order = Order(Runs.of([(A, 1), (B, 4)]))
    rows: list[Record] = [(B, 1), (B, 1), (B, 2), (B, 3), (B, 2), (B, 6), (A, 1), (B, 4)]
    log = ListLog(rows, [2])
    restored = bounded(order, log, CacheLimit(messages=2, bytes=10**6))
    assert values_of(restored) == values_in_order(order)
    assert log.opened == [None, 0]
    found = restored.statistics
    assert (found.repeats, found.gaps, found.beyond) == (2, 0, 1)


def test_a_lag_cursor_counts_gaps_and_waits_for_the_record_to_come_again() -> None:
    order = Order(Runs.of([(A, 1), (B, 3)]))
    rows: list[Record] = [(B, 1), (A, 1), (B, 3), (B, 2), (B, 3)]
    restored = bounded(order, ListLog(rows, [1]), CacheLimit(0, 0))
    assert values_of(restored) == values_in_order(order)
    assert (restored.statistics.gaps, restored.statistics.repeats) == (1, 0)


def test_batches_without_a_record_of_ours_are_read_over() -> None:
    order = Order(Runs.of([(A, 1), (B, 1)]))
    rows: list[Record] = [FOREIGN, (B, 1), FOREIGN, (C, 1), (A, 1)]
    for limit in (LARGE, CacheLimit(0, 0)):
        restored = bounded(order, ListLog(rows, [1]), limit)
        assert values_of(restored) == values_in_order(order)
        assert (restored.statistics.foreign, restored.statistics.beyond) == (2, 1)
        assert restored.live_offset == 3


def test_the_live_phase_begins_where_the_lead_has_stopped_reading() -> None:
    order = Order(Runs.of([(A, 1)]))
    restored = bounded(order, ListLog([(A, 1), (A, 2), (B, 1)], [1], offset_step=5), LARGE)
    values_of(restored)
    assert (restored.live_offset, restored.statistics.beyond) == (1, 0)


@pytest.mark.parametrize("limit", [LARGE, CacheLimit(0, 0), CacheLimit(1, 10**6)])
@pytest.mark.parametrize("missing", [(A, 1), (A, 3), (B, 2)])
def test_a_record_that_the_log_lacks_is_refused_by_name_and_never_waited_for(
    missing: Record, limit: CacheLimit
) -> None:
    rows = [record for record in DISORDERED if record != missing]
    words = rf"record \(producer {missing[0]}, serial {missing[1]}\)"
    with pytest.raises(Refused, match=words):
        values_of(bounded(NOTES, ListLog(rows, [2]), limit))
    with pytest.raises(Refused, match=words):
        values_of(unbounded(NOTES, ListLog(rows, [2]).open(None)))
    with pytest.raises(Refused, match=words):
        values_of(scatter(NOTES, ListLog(rows, [2]).open(None), window=2))


def test_memory_that_arrow_really_holds_stays_near_the_limit() -> None:
    rows_per_batch, batches, value = 200, 40, b"x" * 500
    half = rows_per_batch * batches // 2
    order = Order(Runs.of([(A, 1), (B, 1)] * half))

    class Generated:
        records = 2 * half
        cursors = 0

        def open(self, offset: Offset | None) -> Iterator[Batch]:
            self.cursors += 1
            return self.batches(offset or 0)

        def batches(self, begin: int) -> Iterator[Batch]:
            for first in range(begin, self.records, rows_per_batch):
                offsets = np.arange(first, min(first + rows_per_batch, self.records))
                producers, serials = np.where(offsets < half, B, A), offsets % half + 1
                payload = pa.record_batch({"value": pa.array([value] * len(offsets))})
                yield Batch(payload, producers.astype(np.int64), serials.astype(np.int64), offsets.astype(np.int64))

    log, before = Generated(), pa.total_allocated_bytes()
    limit = CacheLimit(messages=10**6, bytes=300_000)
    peak, left = 0, 0
    restored = bounded(order, log, limit)
    for batch in restored:
        left += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert (left, log.cursors) == (2 * half, 2)
    in_hand = 4 * rows_per_batch * 520  # a batch and its sorted copy per cursor
    assert peak <= limit.bytes + in_hand
