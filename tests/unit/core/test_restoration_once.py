"""Restorations that read once, by example: skip, unbounded and scatter."""

from __future__ import annotations

import sys

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
from zerotail.core.identity import Serial
from zerotail.core.order import Order, Runs
from zerotail.core.restoration import Batch, Statistics, bounded, scatter, skip, unbounded
from zerotail.errors import Misused

pytestmark = pytest.mark.fast

scatter_module = sys.modules[scatter.__module__]


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
    rows: list[Record] = [record for s in range(1, 301, 2) for record in ((A, s), (A, s + 1), (B, s), (B, s + 1))]
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
