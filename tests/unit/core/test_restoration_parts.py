"""Batches, arrivals and statistics: what a restoration reads, foresees and counts."""

from __future__ import annotations

import numpy as np
import pytest

from property.logs import FOREIGN, NOTES, A, B, C, names, numbers, payload_of
from zerotail.core.merge import Merge
from zerotail.core.restoration import Batch, Statistics
from zerotail.core.restoration.arrivals import admit, foresee, sort_arrivals, split
from zerotail.core.restoration.statistics import Tally

pytestmark = pytest.mark.fast


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
    assert tally.statistics == Statistics(first_hits=5, repeats=1, peak_cache_messages=7, peak_cache_bytes=200)


def test_the_live_phase_begins_at_the_first_record_that_was_left_else_behind_what_was_read() -> None:
    assert Tally().live_offset is None
    tally = Tally()
    tally.read_to(5)
    assert tally.live_offset == 5
    tally.leave(3)
    tally.leave(4)
    tally.read_to(9)
    assert tally.live_offset == 3
