"""For every order: positions and records are one to one, alone and by the million."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.interleavings import interleavings, vectors
from zerotail.core.identity import Position, ProducerNumber
from zerotail.core.order import BEFORE, BEYOND, Order, Runs, concatenate

pytestmark = pytest.mark.fast


@given(st.data())
def test_position_is_a_bijection_and_agrees_with_counting(data: st.DataObject) -> None:
    each = data.draw(interleavings())
    before = data.draw(vectors(each))
    first = data.draw(st.integers(0, 2**40))
    order = Order(Runs.of_records(each), before=before, first_position=first)
    vector = {number: before.get(ProducerNumber(number), 0) for number in {*each, *before}}
    producers, serials = [], []
    for position, producer in enumerate(each, first):
        vector[producer] += 1
        producers.append(producer)
        serials.append(vector[producer])
        assert order.position(ProducerNumber(producer), vector[producer]) == position
        assert order.record_at(Position(position)) == (producer, vector[producer])
    assert order.vector_after == vector
    shuffled = np.array(data.draw(st.permutations(range(len(each)))), dtype=np.int64)
    producer_array, serial_array = np.array(producers, dtype=np.int64), np.array(serials, dtype=np.int64)
    assert np.array_equal(order.positions(producer_array[shuffled], serial_array[shuffled]), shuffled + first)
    found = order.records_at(shuffled + first)
    assert np.array_equal(found[0], producer_array[shuffled])
    assert np.array_equal(found[1], serial_array[shuffled])


@given(st.data())
def test_stretches_of_an_order_agree_with_single_records(data: st.DataObject) -> None:
    each = data.draw(interleavings())
    before = data.draw(vectors(each))
    order = Order(Runs.of_records(each), before=before, first_position=data.draw(st.integers(0, 99)))
    begin = data.draw(st.integers(order.first_position, order.next_position))
    end = data.draw(st.integers(begin, order.next_position))
    producers, serials = order.records_between(begin, end)
    assert [*zip(producers.tolist(), serials.tolist(), strict=True)] == [
        order.record_at(Position(position)) for position in range(begin, end)
    ]
    for producer in order.producers:
        first = data.draw(st.integers(order.vector_before[producer] + 1, order.vector_after[producer] + 1))
        after = data.draw(st.integers(first, order.vector_after[producer] + 1))
        expected = [order.position(producer, serial) for serial in range(first, after)]
        assert order.positions_of(producer, first, after).tolist() == expected


@given(st.data())
def test_every_record_outside_the_order_is_before_or_beyond_it(data: st.DataObject) -> None:
    each = data.draw(interleavings(max_records=30))
    order = Order(Runs.of_records(each), before=data.draw(vectors(each)))
    strangers = [ProducerNumber(max(order.producers, default=0) + 1)]
    for producer in [*order.producers, *strangers]:
        last, end = order.vector_before.get(producer, 0), order.vector_after.get(producer, 0)
        serials = np.array([last - 1, last, end + 1, end + 2], dtype=np.int64)
        found = order.positions(np.full(4, producer, dtype=np.int64), serials)
        assert found.tolist() == [BEFORE, BEFORE, BEYOND, BEYOND]


@given(interleavings(), st.data())
def test_cutting_an_order_and_joining_the_parts_changes_nothing(each: list[int], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(each)), max_size=5)))
    borders = [0, *cuts, len(each)]
    parts = [Runs.of_records(each[a:b]) for a, b in pairwise(borders)]
    assert concatenate(parts) == Runs.of_records(each)
