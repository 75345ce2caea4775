"""Which records of a batch are taken, and that both ways to compute it agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerotail.core import admission
from zerotail.core.admission import FOREIGN, Admission, Arrivals, admit, admit_few, admit_many
from zerotail.core.identity import Epoch, ProducerNumber, Serial

pytestmark = pytest.mark.fast

A, B = ProducerNumber(1), ProducerNumber(2)
OLD, NOW, LATER = Epoch(256), Epoch(513), Epoch(768)
VECTOR = {A: Serial(2), B: Serial(0)}
LIMITS = {OLD: {A: Serial(4), B: Serial(1)}, NOW: None}


def _arrivals(*rows: tuple[int, int, int]) -> Arrivals:
    return Arrivals(
        [ProducerNumber(producer) for producer, _, _ in rows],
        [Serial(serial) for _, serial, _ in rows],
        [Epoch(epoch) for _, _, epoch in rows],
    )


@pytest.fixture(params=[admit_few, admit_many])
def rule(request: pytest.FixtureRequest) -> object:
    return request.param


def test_what_follows_the_vector_is_taken_in_the_order_of_the_batch(rule: object) -> None:
    found = rule(_arrivals((A, 3, NOW), (B, 1, NOW), (A, 4, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert found.accepted == [0, 1, 2]
    assert found.vector == {A: 4, B: 1}
    assert not found.gaps


def test_what_is_below_the_vector_is_a_repeat(rule: object) -> None:
    found = rule(_arrivals((A, 1, NOW), (A, 2, NOW), (A, 3, NOW), (A, 3, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.repeats) == ([2], 3)


def test_a_gap_holds_back_what_is_behind_it_and_names_where_to_send_from(rule: object) -> None:
    found = rule(_arrivals((A, 5, NOW), (B, 1, NOW), (A, 6, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.held, found.gaps) == ([1], 2, {A: 3})


def test_a_gap_that_is_filled_later_in_the_batch_is_none(rule: object) -> None:
    rows = ((A, 4, NOW), (A, 3, NOW), (A, 4, NOW))
    found = rule(_arrivals(*rows), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.held, found.gaps) == ([1, 2], 1, {})


def test_a_record_beyond_the_cut_of_its_epoch_is_an_orphan(rule: object) -> None:
    found = rule(_arrivals((A, 3, OLD), (A, 4, OLD), (A, 5, OLD), (A, 5, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.orphans) == ([0, 1, 3], 1)


def test_a_record_of_an_epoch_that_did_not_survive_is_an_orphan(rule: object) -> None:
    found = rule(_arrivals((A, 3, 300), (A, 3, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.orphans) == ([1], 1)


def test_a_record_without_our_header_is_foreign(rule: object) -> None:
    found = rule(_arrivals((FOREIGN, 0, 0), (77, 1, NOW), (A, 3, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.foreign) == ([2], 2)


def test_a_record_of_a_newer_epoch_says_that_the_reader_is_outdated(rule: object) -> None:
    found = rule(_arrivals((A, 3, NOW), (A, 4, LATER), (A, 4, NOW)), VECTOR, LIMITS)  # type: ignore[operator]
    assert (found.accepted, found.outdated) == ([0], True)


def test_an_empty_batch_changes_nothing(rule: object) -> None:
    found = rule(_arrivals(), VECTOR, LIMITS)  # type: ignore[operator]
    assert found == Admission([], dict(VECTOR), 0, 0, 0, 0, {}, outdated=False)


_rows = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 3]), st.integers(0, 9), st.sampled_from([0, 256, 257, 513, 513, 513, 768])),
    max_size=60,
)


@settings(max_examples=400, deadline=None)
@given(_rows, st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.integers(0, 9))
def test_both_ways_agree_on_every_batch(
    rows: list[tuple[int, int, int]], a: int, b: int, cut_a: int, cut_b: int
) -> None:
    vector = {A: Serial(a), B: Serial(b)}
    limits = {OLD: {A: Serial(cut_a), B: Serial(cut_b)}, NOW: None}
    arrivals = _arrivals(*rows)
    few, many = admit_few(arrivals, vector, limits), admit_many(arrivals, vector, limits)
    assert few == many
    assert list(few.gaps) == list(many.gaps)


@pytest.mark.parametrize("size", [1, 512, 513, 5000])
def test_small_and_large_batches_get_the_same_answer(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1 + number % 2, 1 + number // 2, 513) for number in range(size)]
    start = {A: Serial(0), B: Serial(0)}
    found = admit(_arrivals(*rows), start, {NOW: None})
    assert found == admit_few(_arrivals(*rows), start, {NOW: None})
    monkeypatch.setattr(admission, "admit_few", None)
    if size > 512:
        assert admit(_arrivals(*rows), start, {NOW: None}).accepted == found.accepted
