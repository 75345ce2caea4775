"""For every order of a segment: the encoding comes back, is short, and is the same by both paths."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.interleavings import interleavings
from zerotail.core import segment
from zerotail.core.order import Runs
from zerotail.core.segment import SegmentOrder, decode_order, encode_order, packed_bytes
from zerotail.errors import Broken

pytestmark = pytest.mark.fast


def by_numpy(order: Runs) -> SegmentOrder:
    with patch.object(segment, "_FEW_RECORDS", 0):
        return encode_order(order)


def by_python(order: Runs) -> SegmentOrder:
    with patch.object(segment, "_FEW_RECORDS", 2**62):
        return encode_order(order)


@given(interleavings())
def test_an_encoded_order_comes_back(each: list[int]) -> None:
    runs = Runs.of_records(each)
    order = encode_order(runs)
    assert decode_order(order) == runs
    assert order.producers == (*sorted({*each}),)
    assert order.counts == (*(each.count(producer) for producer in order.producers),)


@given(interleavings())
def test_an_encoding_never_exceeds_the_packed_size_and_the_tag(each: list[int]) -> None:
    order = encode_order(Runs.of_records(each))
    assert len(order.encoded) <= 1 + packed_bytes(len(each), len(order.producers))


@given(interleavings())
def test_python_and_numpy_write_and_read_the_same_bytes(each: list[int]) -> None:
    runs = Runs.of_records(each)
    order = by_numpy(runs)
    assert by_python(runs) == order
    with patch.object(segment, "_FEW_RECORDS", 2**62):
        assert decode_order(order) == runs
    with patch.object(segment, "_FEW_RECORDS", 0):
        assert decode_order(order) == runs


@given(interleavings(max_producers=5, max_records=80), st.data())
def test_changed_bytes_are_broken_or_another_order_with_the_same_counts(each: list[int], data: st.DataObject) -> None:
    order = encode_order(Runs.of_records(each))
    encoded = bytearray(order.encoded)
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= data.draw(st.integers(1, 255))
    changed = SegmentOrder(order.producers, order.counts, bytes(encoded))
    verdicts: list[Runs | None] = []
    for few in (0, 2**62):
        with patch.object(segment, "_FEW_RECORDS", few):
            try:
                runs = decode_order(changed)
            except Broken:
                verdicts.append(None)
            else:
                assert dict(zip(order.producers, order.counts, strict=True)) == runs.per_producer()
                assert place == 0 or runs != Runs.of_records(each)
                verdicts.append(runs)
    assert verdicts[0] == verdicts[1]
