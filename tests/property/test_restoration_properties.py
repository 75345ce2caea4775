"""For every log that holds an order's records: the same sequence by every restoration, within its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from property.logs import (
    FOREIGN,
    ListLog,
    ListSpill,
    by_the_notes,
    payload_of,
    refilled,
    value_of,
    values_in_order,
    values_of,
)
from zerotail.core.identity import ProducerNumber
from zerotail.core.order import Order, Runs
from zerotail.core.refill import merge_sources
from zerotail.core.restoration import CacheLimit, Restored, bounded, scatter, skip, unbounded
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

limits = st.builds(CacheLimit, messages=st.integers(0, 60), bytes=st.sampled_from([0, 60, 300, 1500, 10**9]))
NO_LIMIT = CacheLimit(10**9, 10**9)


@given(refilled(), limits, st.integers(1, 50))
def test_every_restoration_gives_the_records_in_journal_order(
    case: tuple[Order, ListLog], limit: CacheLimit, window: int
) -> None:
    order, log = case
    expected = values_in_order(order)
    assert values_of(unbounded(order, log.open(None))) == expected
    assert values_of(bounded(order, log, limit)) == expected
    assert values_of(scatter(order, log.open(None), window=window)) == expected


@given(refilled(), limits)
def test_with_a_place_to_spill_to_the_log_is_read_once_and_no_limit_is_passed(
    case: tuple[Order, ListLog], limit: CacheLimit
) -> None:
    order, log = case
    spill = ListSpill()
    restored = bounded(order, log, limit, spill)
    assert values_of(restored) == values_in_order(order)
    found = restored.statistics
    assert log.opened in ([None], [])
    assert found.reads <= 1
    assert (found.peak_cache_messages <= limit.messages, found.peak_cache_bytes <= limit.bytes) == (True, True)
    assert found.spilled == spill.kept
    assert found.cache_hits >= found.spilled
    assert found.total == len(order)
    assert found.total + found.repeats + found.gaps + found.beyond + found.foreign <= found.records_read
    assert not any(spill.records.values())


def test_a_record_that_the_log_repeats_does_not_pass_beside_its_twin_in_the_spill() -> None:
    order = Order(Runs.of([(ProducerNumber(producer), 1) for producer in (1, 2, 0, 2)]))
    log = ListLog([(0, 1), (2, 1), (1, 1), (2, 1), (2, 2)], [])
    assert values_of(bounded(order, log, CacheLimit(0, 0), ListSpill())) == values_in_order(order)


@given(refilled(), st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_the_ordered_refill_gives_the_same_sequence(case: tuple[Order, ListLog], cuts: list[int]) -> None:
    order, _ = case
    sources = {}
    for producer in order.producers:
        rest = [(producer, s) for s in range(order.vector_before[producer] + 1, order.vector_after[producer] + 3)]
        source = ListLog([(int(p), s) for p, s in rest], cuts)
        sources[producer] = (batch.payload for batch in source.open(None))
    assert values_of(merge_sources(order, sources)) == values_in_order(order)


@given(refilled())
def test_hits_and_peak_are_those_of_the_notes_program(case: tuple[Order, ListLog]) -> None:
    order, log = case
    reference = by_the_notes(order, log.rows)
    ways = [unbounded(order, log.open(None)), bounded(order, log, NO_LIMIT)]
    for restored in ways:
        values_of(restored)
        found = restored.statistics
        assert (found.first_hits, found.cache_hits) == (reference.first_hits, reference.cache_hits)
        assert found.peak_cache_messages == reference.peak_cache_messages
    if not ways[0].statistics.gaps:  # what stands behind a gap, scatter keeps and the others read again
        restored = scatter(order, log.open(None), window=7)
        values_of(restored)
        found = restored.statistics
        assert (found.first_hits, found.cache_hits) == (reference.first_hits, reference.cache_hits)
        assert found.peak_cache_messages == reference.peak_cache_messages


@given(refilled())
def test_every_record_read_has_left_or_is_counted_as_dropped(case: tuple[Order, ListLog]) -> None:
    order, log = case
    for restored in (
        unbounded(order, log.open(None)),
        scatter(order, log.open(None)),
        skip(order.vector_before, log.open(None)),
    ):
        values_of(restored)
        found = restored.statistics
        dropped = found.repeats + found.gaps + found.beyond + found.foreign + found.skipped
        assert found.total + dropped == found.records_read == found.partition_records
        assert found.reads == (1 if found.records_read else 0)


@given(refilled(), limits)
def test_a_bounded_restoration_counts_no_dropped_record_twice(case: tuple[Order, ListLog], limit: CacheLimit) -> None:
    order, log = case
    restored = bounded(order, log, limit)
    values_of(restored)
    found = restored.statistics
    assert found.total == len(order)
    assert found.total + found.repeats + found.gaps + found.beyond + found.foreign <= len(log.rows)


@given(refilled(), limits)
def test_bounded_memory_is_never_above_either_limit(case: tuple[Order, ListLog], limit: CacheLimit) -> None:
    order, log = case
    restored = bounded(order, log, limit)
    for _ in restored:
        assert restored.statistics.peak_cache_messages <= limit.messages
        assert restored.statistics.peak_cache_bytes <= limit.bytes


@given(refilled(), limits)
def test_a_bounded_restoration_reads_the_log_once_per_producer_and_once_more_at_the_most(
    case: tuple[Order, ListLog], limit: CacheLimit
) -> None:
    order, log = case
    restored = bounded(order, log, limit)
    values_of(restored)
    most = len(order.producers) + 1
    assert len(log.opened) <= most
    assert restored.statistics.reads <= most
    assert restored.statistics.records_read <= most * len(log.rows)
    assert restored.statistics.partition_records == len(log.rows)


@given(refilled(), st.integers(0, 3))
def test_a_bounded_restoration_reads_once_exactly_if_the_disorder_fits(case: tuple[Order, ListLog], more: int) -> None:
    order, log = case
    disorder = by_the_notes(order, log.rows).peak_cache_messages
    restored = bounded(order, log, CacheLimit(messages=disorder + more, bytes=10**9))
    values_of(restored)
    assert log.opened in ([None], [])
    assert restored.statistics.peak_cache_messages == disorder


@given(refilled(), limits, st.data())
def test_a_missing_record_is_refused_by_name(
    case: tuple[Order, ListLog], limit: CacheLimit, data: st.DataObject
) -> None:
    order, log = case
    assume(len(order))
    position = data.draw(st.integers(order.first_position, order.next_position - 1))
    producer, serial = order.record_at(position)  # type: ignore[arg-type]
    log.rows = [record for record in log.rows if record != (producer, serial)]
    for restored in (
        unbounded(order, log.open(None)),
        bounded(order, log, limit),
        bounded(order, log, limit, ListSpill()),
        scatter(order, log.open(None), window=9),
    ):
        with pytest.raises(
            Refused, match=rf"record \(producer {producer}, serial {serial}\), at position {position} of"
        ):
            values_of(restored)


@given(refilled(), limits)
def test_no_record_before_the_live_offset_lies_behind_the_journals_end(
    case: tuple[Order, ListLog], limit: CacheLimit
) -> None:
    order, log = case

    def check(restored: Restored) -> None:
        values_of(restored)
        live = restored.live_offset
        for row, (producer, serial) in enumerate(log.rows):
            behind = (producer, serial) != FOREIGN and serial > order.vector_after.get(ProducerNumber(producer), 0)
            assert not behind or live is None or row * log.offset_step >= live

    check(unbounded(order, log.open(None)))
    check(bounded(order, log, limit))
    check(bounded(order, log, limit, ListSpill()))
    check(scatter(order, log.open(None), window=5))


@given(refilled())
def test_skip_gives_what_the_vector_does_not_cover_in_the_order_of_the_log(
    case: tuple[Order, ListLog],
) -> None:
    order, log = case
    vector = {producer: order.vector_before[producer] for producer in order.producers}
    last: dict[int, int] = {int(producer): serial for producer, serial in vector.items()}
    expected = []
    for producer, serial in log.rows:
        if producer >= 0 and serial == last.get(producer, 0) + 1:
            last[producer] = serial
            expected.append(value_of((producer, serial)))
    restored = skip(vector, log.open(None))
    assert values_of(restored) == expected
    found = restored.statistics
    assert found.total == found.first_hits == len(expected)
    assert found.total + found.skipped + found.repeats + found.gaps + found.foreign == len(log.rows)
    assert found.skipped == sum(
        producer >= 0 and serial <= vector.get(ProducerNumber(producer), 0) for producer, serial in log.rows
    )


@given(st.data())
def test_scatter_restores_any_permutation_even_of_one_producer(data: st.DataObject) -> None:
    order, log = data.draw(refilled(max_records=60))
    log.rows = data.draw(st.permutations(log.rows))
    assert values_of(scatter(order, log.open(None), window=data.draw(st.integers(1, 20)))) == values_in_order(order)


def test_the_reference_program_agrees_with_the_example_of_the_notes() -> None:
    order = Order(Runs.of([(1, 2), (2, 2), (1, 1)]))
    found = by_the_notes(order, [(2, 1), (2, 2), (1, 1), (1, 2), (1, 3)])
    assert (found.first_hits, found.cache_hits, found.peak_cache_messages) == (3, 2, 2)
    assert np.array_equal(payload_of([(1, 1)], [7]).column("offset").to_numpy(), [7])
