"""Counting: repeats, late numbers and gaps told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.drill.checker.counting import Counting

pytestmark = pytest.mark.fast

small_numbers = st.lists(st.integers(min_value=1, max_value=12), max_size=25)


def counted(numbers: list[int]) -> Counting[int]:
    """Evidence is the index at which a number came."""
    counting: Counting[int] = Counting()
    for index, number in enumerate(numbers):
        counting.take(number, index)
    return counting


@given(small_numbers)
def test_counting_agrees_with_plain_sets(numbers: list[int]) -> None:
    counting = counted(numbers)
    came = set(numbers)
    assert {number for number in range(1, 14) if counting.has(number)} == came
    assert counting.last == max(came, default=0)
    assert [again.number for again in counting.again] == [
        number for index, number in enumerate(numbers) if number in numbers[:index]
    ]
    assert [late.number for late in counting.late] == [
        number
        for index, number in enumerate(numbers)
        if number not in numbers[:index] and any(before > number for before in numbers[:index])
    ]
    missing = {number for hole in counting.holes for number in range(hole.first, hole.next)}
    assert missing == set(range(1, counting.last + 1)) - came


@given(small_numbers)
def test_evidence_points_at_the_first_that_went_past(numbers: list[int]) -> None:
    counting = counted(numbers)
    for number, passed_by, index in counting.late:
        assert numbers[index] == number
        assert passed_by == next(i for i, other in enumerate(numbers) if other > number)
    for hole in counting.holes:
        assert numbers[hole.passed_by] >= hole.next


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 4)), max_size=8))
def test_a_run_counts_like_its_numbers(runs: list[tuple[int, int]]) -> None:
    by_run: Counting[int] = Counting()
    one_by_one: Counting[int] = Counting()
    for index, (first, length) in enumerate(runs):
        by_run.take_run(first, length, index)
        for number in range(first, first + length):
            one_by_one.take(number, index)
    assert by_run.last == one_by_one.last
    assert by_run.again == one_by_one.again
    assert by_run.late == one_by_one.late
    assert by_run.holes == one_by_one.holes


def test_an_absurd_number_costs_nothing() -> None:
    counting = counted([1, 10**15])
    assert counting.holes[0].first == 2
    assert not counting.has(10**14)
