"""Runs, and where a record stands in them."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.core.order import BEFORE, BEYOND, Order, Run, Runs, concatenate
from zerotail.errors import Broken, Misused, Refused

pytestmark = pytest.mark.fast

A, B, C = ProducerNumber(1), ProducerNumber(2), ProducerNumber(7)
EXAMPLE = Runs.of([(A, 2), (B, 2), (A, 1)])
"""The order of the notes: A1 A2 B1 B2 A3."""


def numbers(*values: int) -> np.typing.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def test_neighbours_of_one_producer_are_one_run_and_empty_runs_vanish() -> None:
    runs = Runs.of([(A, 0), (A, 1), (B, 0), (A, 2), (B, 3), (B, 0), (B, 1), (A, 1), (C, 0)])
    assert [*runs] == [Run(A, 3), Run(B, 4), Run(A, 1)]
    assert (len(runs), runs.records) == (3, 8)


def test_a_run_shorter_than_none_is_broken() -> None:
    with pytest.raises(Broken, match="a run has -1 records"):
        Runs.of([(A, 2), (B, -1)])


def test_runs_of_records_are_the_runs_that_expand_to_them() -> None:
    each = [A, A, B, B, A]
    runs = Runs.of_records(each)
    assert runs == EXAMPLE
    assert runs.per_record().tolist() == each
    assert Runs.of_records([C]) == Runs.of([(C, 1)])


def test_no_records_are_no_runs() -> None:
    for none in (Runs.of([]), Runs.of_records([]), concatenate([]), Runs.of([(A, 0)])):
        assert (len(none), none.records, [*none], none.per_record().tolist()) == (0, 0, [], [])
        assert none.per_producer() == {}
        assert none.producers.dtype == none.counts.dtype == np.int64


def test_records_are_counted_per_producer_by_ascending_number() -> None:
    counts = Runs.of([(C, 2), (A, 1), (C, 3)]).per_producer()
    assert [*counts.items()] == [(A, 1), (C, 5)]


def test_a_run_that_a_border_cut_in_two_is_one_run_again() -> None:
    joined = concatenate([Runs.of([(A, 1), (B, 1)]), Runs.of([]), Runs.of([(B, 2), (A, 1)])])
    assert [*joined] == [Run(A, 1), Run(B, 3), Run(A, 1)]


def test_runs_are_equal_by_content() -> None:
    assert Runs.of([(A, 2)]) == Runs.of([(A, 1), (A, 1)])
    assert Runs.of([(A, 2)]) != Runs.of([(A, 1)])
    assert Runs.of([(A, 2)]) != Runs.of([(B, 2)])
    assert Runs.of([(A, 2)]) != [Run(A, 2)]
    with pytest.raises(TypeError, match="unhashable"):
        hash(EXAMPLE)


def test_runs_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        EXAMPLE.counts = numbers(1)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Run(A, 2).count = 3  # type: ignore[misc]


def test_runs_print_shortly() -> None:
    assert repr(EXAMPLE) == "Runs(1×2 2×2 1×1)"
    assert repr(Runs.of_records([1, 2] * 10)) == "Runs(" + " ".join(["1×1 2×1"] * 10) + ")"
    assert repr(Runs.of_records([1, 2] * 10 + [1])) == "Runs(" + " ".join(["1×1 2×1"] * 10) + " …)"


def test_the_order_of_the_notes_has_every_record_at_its_place() -> None:
    order = Order(EXAMPLE)
    records = [(A, 1), (A, 2), (B, 1), (B, 2), (A, 3)]
    assert [order.position(producer, serial) for producer, serial in records] == [0, 1, 2, 3, 4]
    assert [order.record_at(Position(position)) for position in range(5)] == records
    assert (order.first_position, order.next_position, len(order)) == (0, 5, 5)
    assert order.vector_before == {A: 0, B: 0}
    assert order.vector_after == {A: 3, B: 2}


def test_an_order_can_begin_in_the_middle_of_history() -> None:
    order = Order(EXAMPLE, before={B: Serial(10), C: Serial(4)}, first_position=100)
    assert order.producers == (A, B, C)
    assert order.vector_before == {A: 0, B: 10, C: 4}
    assert order.vector_after == {A: 3, B: 12, C: 4}
    assert (order.first_position, order.next_position, len(order)) == (100, 105, 5)
    assert order.position(B, 11) == 102
    assert order.record_at(Position(103)) == (B, 12)
    assert order.record_at(Position(104)) == (A, 3)


def test_records_before_and_beyond_an_order_have_no_position_in_it() -> None:
    order = Order(EXAMPLE, before={B: Serial(10), C: Serial(4)}, first_position=100)
    producers = numbers(B, B, B, B, A, A, A, C, C, 3, 0, 99, 3)
    serials = numbers(10, 11, 12, 13, 0, 1, 4, 4, 5, 1, 1, 1, 0)
    expected = [BEFORE, 102, 103, BEYOND, BEFORE, 100, BEYOND, BEFORE, BEYOND, BEYOND, BEYOND, BEYOND, BEFORE]
    assert order.positions(producers, serials).tolist() == expected
    pairs = zip(producers.tolist(), serials.tolist(), strict=True)
    assert [order.find_position(ProducerNumber(producer), serial) for producer, serial in pairs] == [
        None if place in (BEFORE, BEYOND) else place for place in expected
    ]


def test_before_and_beyond_compare_with_every_position_as_their_names_say() -> None:
    assert (BEFORE, BEYOND) == (-1, 2**63 - 1)


@pytest.mark.parametrize(
    ("producer", "serial", "words"),
    [
        (B, 10, r"no record \(producer 2, serial 10\); it has serials 11 to 12 of it"),
        (B, 13, r"no record \(producer 2, serial 13\); it has serials 11 to 12 of it"),
        (C, 5, r"no record \(producer 7, serial 5\); it has no records of it"),
        (99, 1, r"no record \(producer 99, serial 1\); it has no records of it"),
    ],
)
def test_asking_for_a_record_that_the_order_lacks_is_refused_by_name(producer: int, serial: int, words: str) -> None:
    order = Order(EXAMPLE, before={B: Serial(10), C: Serial(4)})
    with pytest.raises(Refused, match=words):
        order.position(ProducerNumber(producer), serial)


@pytest.mark.parametrize("position", [99, 105])
def test_asking_for_a_position_that_the_order_lacks_is_refused(position: int) -> None:
    order = Order(EXAMPLE, first_position=100)
    with pytest.raises(Refused, match=f"no position {position}; it has 100 to 104"):
        order.record_at(Position(position))
    with pytest.raises(Refused, match=f"no position {position}; it has 100 to 104"):
        order.records_at(numbers(102, position, 103))
    with pytest.raises(Refused, match=f"no position {position}; it has 100 to 104"):
        order.records_between(min(position, 101), max(position + 1, 102))


def test_an_empty_order_holds_nothing() -> None:
    order = Order(Runs.of([]), before={B: Serial(10)}, first_position=7)
    assert (len(order), order.first_position, order.next_position) == (0, 7, 7)
    found = order.positions(numbers(B, B, A, A), numbers(10, 11, 1, 0))
    assert found.tolist() == [BEFORE, BEYOND, BEYOND, BEFORE]
    assert Order(Runs.of([])).positions(numbers(B), numbers(1)).tolist() == [BEYOND]
    with pytest.raises(Refused, match="no position 7; it has none at all"):
        order.record_at(Position(7))


def test_no_question_has_no_answer() -> None:
    order = Order(EXAMPLE)
    for empty in (
        order.positions(numbers(), numbers()),
        order.positions_of(A, 4, 4),
        *order.records_at(numbers()),
        *order.records_between(9, 9),
    ):
        assert empty.tolist() == []
        assert empty.dtype == np.int64


def test_consecutive_records_of_a_producer_are_found_together() -> None:
    order = Order(EXAMPLE, before={A: Serial(5)}, first_position=10)
    assert order.positions_of(A, 6, 9).tolist() == [10, 11, 14]
    assert order.positions_of(A, 7, 9).tolist() == [11, 14]
    assert order.positions_of(B, 1, 2).tolist() == [12]
    for first, after in ((5, 7), (7, 10)):
        with pytest.raises(Refused, match="it has serials 6 to 8 of it"):
            order.positions_of(A, first, after)


def test_indexes_count_the_known_producers_and_are_minus_one_for_the_others() -> None:
    order = Order(EXAMPLE, before={C: Serial(4)})
    assert order.indexes_of(numbers(0, A, B, 3, C, 8)).tolist() == [-1, 0, 1, -1, 2, -1]


def test_an_order_can_be_sent_to_another_process() -> None:
    order = Order(EXAMPLE, before={B: Serial(10)}, first_position=100)
    copy = pickle.loads(pickle.dumps(order))  # noqa: S301
    assert copy.runs == order.runs
    assert copy.vector_after == order.vector_after
    assert [copy.record_at(Position(p)) for p in range(100, 105)] == [
        order.record_at(Position(p)) for p in range(100, 105)
    ]


def test_the_arrays_of_an_order_cannot_be_changed() -> None:
    order = Order(EXAMPLE)
    for shared in (order.indexes, order.starts, order.first_serials):
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 1


def test_more_producers_than_an_index_can_count_are_misused() -> None:
    most = 2**15 - 1
    last = Order(Runs.of_records(np.arange(most)))
    assert last.position(ProducerNumber(most - 1), 1) == most - 1
    with pytest.raises(Misused, match=f"{most} producers at most, not {most + 1}"):
        Order(Runs.of_records(np.arange(most + 1)))
