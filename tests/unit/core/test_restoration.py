"""The restorations by example: what leaves, what is dropped, what is counted, what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from property.logs import FOREIGN, ListLog, Record, payload_of, value_of, values_in_order, values_of
from zerotail.core.identity import Offset, ProducerNumber, Serial
from zerotail.core.merge import Merge
from zerotail.core.order import Order, Runs
from zerotail.core.restoration import Batch, CacheLimit, Statistics, bounded, scatter, skip, unbounded
from zerotail.core.restoration.arrivals import admit, foresee, sort_arrivals, split
from zerotail.core.restoration.statistics import Tally
from zerotail.errors import Misused, Refused

scatter_module = sys.modules[scatter.__module__]

A, B, C = ProducerNumber(1), ProducerNumber(2), ProducerNumber(3)
NOTES = Order(Runs.of([(A, 2), (B, 2), (A, 1)]))
"""A1 A2 B1 B2 A3."""
DISORDERED: list[Record] = [(B, 1), (B, 2), (A, 1), (A, 2), (A, 3)]
"""The standby's log of the notes."""
LARGE = CacheLimit(messages=10**6, bytes=10**9)


def names(records: list[Record]) -> list[bytes]:
    return [value_of(record) for record in records]


def numbers(*each: int) -> np.typing.NDArray[np.int64]:
    return np.array(each, dtype=np.int64)


# Batches ----------------------------------------------------------------------------------------------------


def test_a_batch_carries_the_numbers_of_its_headers_and_leaves_foreign_rows_out() -> None:
    batch = Batch.of(payload_of([FOREIGN, (A, 4), FOREIGN, (B, 9)], [10, 11, 14, 15]))
    assert (batch.producers.tolist(), batch.serials.tolist()) == ([A, B], [4, 9])
    assert (batch.offsets.tolist(), batch.foreign) == ([11, 15], 2)
    assert (len(batch), batch.records_read) == (2, 4)
    assert batch.payload.column("value").to_pylist() == names([(A, 4), (B, 9)])


def test_a_batch_without_foreign_rows_shares_the_payload() -> None:
    payload = payload_of([(A, 4)], [10])
    assert Batch.of(payload).payload is payload


def test_the_columns_of_header_and_offset_may_have_other_names() -> None:
    payload = payload_of([(A, 4)], [10]).rename_columns(["h", "o", "value"])
    assert Batch.of(payload, header="h", offset="o").offsets.tolist() == [10]


def test_a_slice_of_a_batch_has_its_rows_and_no_foreign_ones() -> None:
    batch = Batch.of(payload_of([FOREIGN, (A, 1), (A, 2), (B, 1)], [0, 1, 2, 3]))
    for part, rows in (
        (batch.slice(1), slice(1, None)),
        (batch.slice(0, 2), slice(0, 2)),
        (batch.slice(1, 1), slice(1, 2)),
    ):
        assert part.producers.tolist() == batch.producers.tolist()[rows]
        assert part.serials.tolist() == batch.serials.tolist()[rows]
        assert part.offsets.tolist() == batch.offsets.tolist()[rows]
        assert part.payload.column("value").to_pylist() == batch.payload.column("value").to_pylist()[rows]
        assert part.foreign == 0


# Arrivals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("serials", "expected", "news", "repeats", "gaps"),
    [
        ([], 5, [], [], []),
        ([5, 6, 7], 5, [0, 1, 2], [], []),
        ([3, 4, 5, 6], 5, [2, 3], [0, 1], []),
        ([3, 4], 5, [], [0, 1], []),
        ([6, 7], 5, [], [], [0, 1]),
        ([6, 7, 5, 6, 7, 8], 5, [2, 3, 4, 5], [], [0, 1]),
        ([5, 6, 5, 6, 7], 5, [0, 1, 4], [2, 3], []),
        ([5, 5, 5], 5, [0], [1, 2], []),
        ([4, 5, 5, 6, 9, 7], 5, [1, 3, 5], [0, 2], [4]),
        ([7, 6, 5], 5, [2], [], [0, 1]),
    ],
)
def test_exactly_the_next_expected_serial_is_news(
    serials: list[int], expected: int, news: list[int], repeats: list[int], gaps: list[int]
) -> None:
    admitted = admit(numbers(*serials), expected)
    assert (admitted.news.tolist(), admitted.repeats.tolist(), admitted.gaps.tolist()) == (
        news,
        repeats,
        gaps,
    )


def test_rows_are_split_by_index_in_the_order_of_the_batch() -> None:
    indexes = np.array([2, -1, 0, 2, 0, -1], dtype=np.int16)
    assert [(index, rows.tolist()) for index, rows in split(indexes, 4)] == [(0, [2, 4]), (2, [0, 3])]
    assert [*split(np.array([-1], dtype=np.int16), 2)] == []


def test_arrivals_tell_news_from_repeats_gaps_and_what_lies_beyond() -> None:
    merge = Merge(NOTES)
    merge.pass_by(1)
    rows = [(A, 1), (A, 2), (C, 1), (B, 2), (B, 1), (A, 4), (B, 2), (B, 3)]
    arrivals = sort_arrivals(Batch.of(payload_of(rows, [*range(8)])), merge)
    assert {producer: mine.tolist() for producer, mine in arrivals.rows.items()} == {A: [1], B: [4, 6]}
    assert (arrivals.repeats, arrivals.gaps, arrivals.beyond.tolist()) == (1, 1, [2, 5, 7])


def test_of_producers_aside_only_what_lies_beyond_is_told() -> None:
    rows = [(A, 1), (A, 1), (A, 4), (B, 1)]
    arrivals = sort_arrivals(Batch.of(payload_of(rows, [*range(4)])), Merge(NOTES), aside=[A])
    assert {producer: mine.tolist() for producer, mine in arrivals.rows.items()} == {B: [3]}
    assert (arrivals.repeats, arrivals.gaps, arrivals.beyond.tolist()) == (0, 0, [2])


def test_what_arrivals_set_free_is_known_before_they_are_put_in() -> None:
    merge = Merge(NOTES)
    foresight = foresee(merge, {B: np.array([0, 1]), A: np.array([2, 3, 5])})
    assert (foresight.first_hits, foresight.cache_hits, foresight.peak_cache_messages) == (3, 2, 2)
    waiting = foresee(merge, {B: np.array([0, 1])})
    assert (waiting.first_hits, waiting.cache_hits, waiting.peak_cache_messages) == (0, 0, 2)


def test_records_of_producers_aside_are_first_hits_and_never_in_the_cache() -> None:
    merge = Merge(NOTES)
    merge.put(A, payload_of([(A, 1), (A, 2), (A, 3)], [0, 1, 2]))
    foresight = foresee(merge, {B: np.array([0, 1])}, aside=[A])
    assert (foresight.first_hits, foresight.cache_hits, foresight.peak_cache_messages) == (5, 0, 0)
    idle = foresee(merge, {}, aside=[A])
    assert (idle.first_hits, idle.cache_hits, idle.peak_cache_messages) == (2, 0, 0)


# Statistics -------------------------------------------------------------------------------------------------


def test_statistics_give_the_figures_of_the_notes() -> None:
    found = Statistics(
        first_hits=145033, cache_hits=54967, peak_cache_messages=4953, records_read=300, partition_records=200
    )
    assert (found.total, round(found.cache_ratio, 4), found.reads) == (200000, 0.0248, 1.5)
    nothing = Statistics()
    assert (nothing.total, nothing.cache_ratio, nothing.reads) == (0, 0.0, 0.0)


def test_a_tally_adds_and_keeps_the_highest() -> None:
    tally = Tally()
    tally.count(first_hits=2, repeats=1)
    tally.count(first_hits=3)
    tally.reach(7, 100)
    tally.reach(5, 200)
    assert tally.statistics == Statistics(
        first_hits=5, repeats=1, peak_cache_messages=7, peak_cache_bytes=200
    )


def test_the_live_phase_begins_at_the_first_record_that_was_left_else_behind_what_was_read() -> None:
    assert Tally().live_offset is None
    tally = Tally()
    tally.read_to(5)
    assert tally.live_offset == 5
    tally.leave(3)
    tally.leave(4)
    tally.read_to(9)
    assert tally.live_offset == 3


# Skip -------------------------------------------------------------------------------------------------------


def test_skip_passes_over_what_the_vector_covers_and_keeps_the_order_of_the_log() -> None:
    rows = [(A, 3), (B, 1), FOREIGN, (B, 2), (A, 4), (C, 1), (A, 4), (B, 4), (B, 3), (C, 2)]
    restored = skip({A: Serial(3), B: Serial(1)}, ListLog(rows, [4]).open(None))
    assert values_of(restored) == names([(B, 2), (A, 4), (C, 1), (B, 3), (C, 2)])
    assert restored.statistics == Statistics(
        first_hits=5, polls=3, records_read=10, partition_records=10, skipped=2, repeats=1, gaps=1, foreign=1
    )


def test_skip_hands_a_batch_on_as_it_is_when_nothing_is_covered() -> None:
    batch = Batch.of(payload_of([(A, 4), (B, 1)], [0, 1]))
    assert next(skip({A: Serial(3)}, [batch])) is batch.payload


def test_skip_yields_no_empty_batch() -> None:
    batches = [*skip({A: Serial(3)}, ListLog([(A, 1), (A, 2), (A, 3), (A, 4)], [2]).open(None))]
    assert [batch.num_rows for batch in batches] == [1]
    assert [*skip({}, [Batch.of(payload_of([FOREIGN], [0]))])] == []


# Unbounded --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [[], [1], [2], [3, 1]])
def test_the_standbys_log_of_the_notes_leaves_in_the_order_of_the_active_site(cuts: list[int]) -> None:
    restored = unbounded(NOTES, ListLog(DISORDERED, cuts).open(None))
    assert values_of(restored) == names([(A, 1), (A, 2), (B, 1), (B, 2), (A, 3)])
    found = restored.statistics
    assert (found.first_hits, found.cache_hits, found.total) == (3, 2, 5)
    assert (found.peak_cache_messages, found.cache_ratio, found.reads) == (2, 0.4, 1.0)
    assert found.polls == (-(-5 // (sum(cuts) / len(cuts))) if cuts else 1)


def test_repeats_foreign_records_and_records_beyond_are_dropped_and_counted() -> None:
    rows = [(B, 1), FOREIGN, (B, 1), (C, 1), (A, 4), (A, 1), (A, 3), (A, 2), (B, 2), (A, 3), (A, 4)]
    log = ListLog(rows, [4], offset_step=10)
    restored = unbounded(NOTES, log.open(None))
    assert values_of(restored) == values_in_order(NOTES)
    found = restored.statistics
    assert (found.repeats, found.foreign, found.beyond, found.gaps) == (1, 1, 3, 1)
    assert (found.records_read, found.partition_records, found.polls) == (11, 11, 3)
    assert restored.live_offset == 30


def test_reading_ends_with_the_last_record_of_the_order() -> None:
    log = ListLog([*DISORDERED, (A, 4), (B, 3)], [5], offset_step=2)
    restored = unbounded(NOTES, log.open(None))
    values_of(restored)
    assert (restored.statistics.polls, restored.statistics.beyond, restored.live_offset) == (1, 0, 9)


def test_nothing_is_read_for_an_empty_order() -> None:
    log = ListLog(DISORDERED)
    empty = Order(Runs.of([]))
    for restored in (
        unbounded(empty, log.open(None)),
        scatter(empty, log.open(None)),
        bounded(empty, log, LARGE),
    ):
        assert values_of(restored) == []
        assert (restored.statistics.polls, restored.live_offset) == (0, None)


def test_a_batch_that_is_in_order_leaves_as_it_is() -> None:
    payload = payload_of([(A, 1), (A, 2), (B, 1)], [0, 1, 2])
    log = [Batch.of(payload), Batch.of(payload_of([(B, 2), (A, 3)], [3, 4]))]
    restored = unbounded(NOTES, log)
    first = next(restored)
    assert first.column("value").buffers()[2].address == payload.column("value").buffers()[2].address
    assert (values_of(restored), restored.statistics.peak_cache_bytes) == (names([(B, 2), (A, 3)]), 0)


def test_a_short_stretch_in_order_does_not_become_a_batch_of_its_own() -> None:
    order = Order(Runs.of([(A, 1), (B, 1)] * 300))
    rows: list[Record] = [
        record for s in range(1, 301, 2) for record in ((A, s), (A, s + 1), (B, s), (B, s + 1))
    ]
    assert [batch.num_rows for batch in unbounded(order, ListLog(rows).open(None))] == [600]


def test_a_long_stretch_in_order_passes_and_the_rest_is_sorted() -> None:
    order = Order(Runs.of([(A, 300), (B, 1), (A, 1)]))
    rows: list[Record] = [*((A, s) for s in range(1, 302)), (B, 1)]
    restored = unbounded(order, ListLog(rows).open(None))
    assert [batch.num_rows for batch in restored] == [300, 2]
    assert (restored.statistics.first_hits, restored.statistics.cache_hits) == (301, 1)


def test_what_a_stretch_in_order_sets_free_leaves_with_it() -> None:
    order = Order(Runs.of([(A, 1), (B, 1)]))
    restored = unbounded(order, ListLog([(B, 1), (A, 1)], [1]).open(None))
    assert values_of(restored) == names([(A, 1), (B, 1)])
    assert (restored.statistics.first_hits, restored.statistics.cache_hits) == (1, 1)


def test_a_kept_record_does_not_keep_its_batch_in_memory() -> None:
    rows: list[Record] = [(B, 1), *((A, s) for s in range(1, 1001))]
    order = Order(Runs.of([(A, 1001), (B, 1)]))
    log = ListLog([*rows, (A, 1001)], [1001])
    restored = unbounded(order, log.open(None))
    next(restored)
    batch_bytes = next(log.open(None)).payload.nbytes
    assert restored.statistics.peak_cache_bytes <= 1.1 * batch_bytes
    assert values_of(restored)[-1] == value_of((B, 1))


def test_an_early_record_is_held_as_a_copy_of_its_own_size() -> None:
    order = Order(Runs.of([(A, 2), (B, 1)]))
    rows: list[Record] = [(B, 1), *((C, s) for s in range(1, 1000)), (A, 1), (A, 2)]
    restored = unbounded(order, ListLog(rows, [1000]).open(None))
    assert values_of(restored) == values_in_order(order)
    assert restored.statistics.peak_cache_bytes < 500


# Scatter ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 5, 6])
def test_scatter_takes_a_producers_records_in_any_order(window: int) -> None:
    rows: list[Record] = [(A, 3), (B, 2), FOREIGN, (A, 2), (B, 2), (A, 4), (B, 1), (A, 1), (C, 1), (A, 1)]
    restored = scatter(NOTES, ListLog(rows, [4], offset_step=10).open(None), window=window)
    assert values_of(restored) == values_in_order(NOTES)
    found = restored.statistics
    assert (found.first_hits, found.cache_hits, found.peak_cache_messages) == (1, 4, 4)
    assert (found.repeats, found.beyond, found.foreign) == ((1, 1, 1) if found.polls == 2 else (2, 2, 1))
    assert restored.live_offset == 50


def test_scatter_drops_a_repeat_inside_one_batch_and_keeps_the_first() -> None:
    payload = payload_of([(A, 1), (A, 1), (A, 2)], [0, 1, 2])
    restored = scatter(Order(Runs.of([(A, 2)])), [Batch.of(payload)])
    assert [batch.column("offset").to_pylist() for batch in restored] == [[0, 2]]
    assert restored.statistics.repeats == 1


def test_scatter_drops_what_lies_before_the_order_and_before_the_windows_that_have_left() -> None:
    order = Order(Runs.of([(A, 2)]), before={A: Serial(5)}, first_position=100)
    rows: list[Record] = [(A, 5), (A, 6), (A, 6), (A, 7)]
    restored = scatter(order, ListLog(rows, [2]).open(None), window=1)
    assert values_of(restored) == names([(A, 6), (A, 7)])
    assert (restored.statistics.repeats, restored.statistics.polls) == (2, 2)


def test_a_window_leaves_only_when_it_is_full() -> None:
    rows: list[Record] = [(A, 1), (A, 2), (B, 1), (B, 2), (A, 3)]
    restored = scatter(NOTES, ListLog(rows, [1]).open(None), window=2)
    assert [batch.num_rows for batch in restored] == [2, 2, 1]
    assert restored.statistics.peak_cache_bytes > 0
    assert restored.statistics.peak_cache_messages == 0


def test_a_window_with_more_bytes_than_arrow_can_address_is_misused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_module, "_MOST_BYTES", 100)
    with pytest.raises(Misused, match=r"a window of 5 records holds \d+ bytes; 100 is the most") as misused:
        values_of(scatter(NOTES, ListLog(DISORDERED).open(None)))
    assert (misused.value.why, len(misused.value.tries)) == (
        "Arrow counts the bytes of a column with 32 bits.",
        1,
    )
    assert values_of(scatter(NOTES, ListLog(DISORDERED, [1]).open(None), window=1)) == values_in_order(NOTES)


def test_a_window_without_room_is_misused() -> None:
    with pytest.raises(Misused, match="a window holds 1 record at least, not 0"):
        scatter(NOTES, [], window=0)


def test_scatter_skips_batches_without_a_record_of_ours() -> None:
    restored = scatter(Order(Runs.of([(A, 1)])), ListLog([FOREIGN, (A, 1)], [1]).open(None))
    assert values_of(restored) == names([(A, 1)])


# Bounded ----------------------------------------------------------------------------------------------------


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
                Batch.of(part)
                for part in (small, large, last)
                if offset is None or part.column(1)[0].as_py() >= offset
            )

    log = Three([])
    restored = bounded(order, log, CacheLimit(messages=100, bytes=900))
    assert values_of(restored) == [*names([(A, 1), (B, 1), (B, 2), (B, 3)]), b"x" * 1000]
    assert log.opened == [None, 3]
    assert small.nbytes <= restored.statistics.peak_cache_bytes <= 900


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
                yield Batch(
                    payload, producers.astype(np.int64), serials.astype(np.int64), offsets.astype(np.int64)
                )

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
