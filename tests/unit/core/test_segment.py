"""The encoded order of a segment: the bytes themselves, and what is not accepted."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from zerotail.core import segment
from zerotail.core.order import Runs
from zerotail.core.segment import PACKED, RUNS, SegmentOrder, decode_order, encode_order, packed_bytes
from zerotail.errors import Broken

pytestmark = pytest.mark.fast

BOTH_WAYS = pytest.mark.parametrize("few_records", [0, 2**62], ids=["numpy", "python"])
"""The same bytes by the path for long segments and by the one for short segments."""


def order_of(producers: list[int], counts: list[int], encoded: str) -> SegmentOrder:
    return SegmentOrder((*producers,), (*counts,), bytes.fromhex(encoded))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], order_of([], [], "00")),
        ([(9, 1)], order_of([9], [1], "00")),
        ([(9, 100000)], order_of([9], [100000], "00")),
        # A1 A2 B1 B2 A3: bits 0 0 1 1 0 from the lowest on
        ([(1, 2), (2, 2), (1, 1)], order_of([1, 2], [3, 2], "000c")),
        # three producers take two bits each: indexes 2 0 1 2 0 are 10 00 01 10 | 00 from the lowest on
        ([(30, 1), (10, 1), (20, 1), (30, 1), (10, 1)], order_of([10, 20, 30], [2, 1, 2], "009200")),
        # two producers, two long runs: (200 - 1) * 2 + 1 = 399 and (30 - 1) * 1 + 0 = 29
        ([(2, 200), (1, 30)], order_of([1, 2], [30, 200], "018f031d")),
        ([(20, 100), (30, 9), (20, 5)], order_of([20, 30], [105, 9], "01c60108" + "04")),
        (
            [(20, 100), (30, 9), (10, 5), (30, 1)],
            order_of([10, 20, 30], [5, 100, 10], "01aa0210" + "08" + "01"),
        ),
    ],
)
@BOTH_WAYS
def test_the_bytes_are_fixed(
    runs: list[tuple[int, int]], expected: SegmentOrder, few_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "_FEW_RECORDS", few_records)
    assert encode_order(Runs.of(runs)) == expected
    assert decode_order(expected) == Runs.of(runs)
    assert expected.records == sum(count for _, count in runs)


def test_a_tie_is_packed() -> None:
    order = encode_order(Runs.of([(1, 4), (2, 8)]))
    assert (order.encoded[0], len(order.encoded)) == (PACKED, 1 + 2)
    assert encode_order(Runs.of([(1, 4), (2, 13)])).encoded[0] == RUNS


@pytest.mark.parametrize(
    ("producers", "bits"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (16, 4), (17, 5), (100, 7)]
)
def test_packing_takes_just_enough_bits_for_the_largest_index(producers: int, bits: int) -> None:
    assert packed_bytes(800, producers) == 100 * bits
    assert packed_bytes(801, producers) == 100 * bits + (bits + 7) // 8


@pytest.mark.parametrize("producers", [256, 257, 300, 70000])
def test_many_producers_are_packed_in_more_than_a_byte_each(producers: int) -> None:
    each = np.arange(producers)[::-1]
    runs = Runs.of_records(np.concatenate([each, each]))
    order = encode_order(runs)
    assert decode_order(order) == runs
    assert len(order.encoded) <= 1 + packed_bytes(2 * producers, producers)


@BOTH_WAYS
def test_runs_that_are_fewer_than_the_packed_bytes_but_not_shorter_are_packed(
    few_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "_FEW_RECORDS", few_records)
    runs = Runs.of([(1, 41), *((2 + run % 4, 1) for run in range(22))])
    assert (len(runs), packed_bytes(runs.records, 5)) == (23, 24)
    order = encode_order(runs)
    assert (order.encoded[0], len(order.encoded)) == (PACKED, 1 + 24)
    assert decode_order(order) == runs


def test_bursts_of_two_producers_cost_a_byte_each() -> None:
    order = encode_order(Runs.of([(1, 100), (2, 100)] * 500))
    assert (order.encoded[0], len(order.encoded)) == (RUNS, 1 + 1 + 1000)


def test_random_interleavings_cost_a_bit_per_record_of_two_producers() -> None:
    order = encode_order(Runs.of([(1, 1), (2, 1)] * 500))
    assert (order.encoded[0], len(order.encoded)) == (PACKED, 1 + 125)


@pytest.mark.parametrize("count", [127, 128, 129, 2**14, 2**14 + 1, 2**21 + 1, 2**35])
@BOTH_WAYS
def test_runs_of_every_length_come_back(count: int, few_records: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "_FEW_RECORDS", few_records)
    runs = Runs.of([(2, count), (1, count), (2, 1)])
    assert decode_order(encode_order(runs)) == runs


A_B_A = order_of([1, 2], [3, 2], "000c")
LONG_RUNS = order_of([1, 2], [30, 200], "018f031d")


@pytest.mark.parametrize(
    ("order", "what"),
    [
        (replace(A_B_A, encoded=b""), "the encoded bytes are empty"),
        (replace(A_B_A, encoded=b"\x02\x0c"), "tag 2 is unknown for 2 producers"),
        (order_of([1], [3], "0105"), "tag 1 is unknown for 1 producers"),
        (order_of([], [], "01"), "tag 1 is unknown for 0 producers"),
        (replace(A_B_A, encoded=b"\x00"), "the packed bytes are cut short, 0 instead of 1"),
        (replace(A_B_A, encoded=b"\x00\x0c\x00"), "the packed bytes go on behind the end, 2 instead of 1"),
        (order_of([1], [3], "0000"), "the packed bytes go on behind the end, 1 instead of 0"),
        (replace(A_B_A, encoded=b"\x00\x2c"), "the bits behind the last record are not zero"),
        (replace(A_B_A, encoded=b"\x00\x1c"), r"the encoded counts are \{1: 2, 2: 3\} \(counts in the clear"),
        (replace(A_B_A, encoded=b"\x00\x1f"), r"the encoded counts are \{2: 5\} \(counts in the clear"),
        (replace(A_B_A, counts=(2, 3)), r"the encoded counts are .* \(counts in the clear \{1: 2, 2: 3\}\)"),
        (order_of([1, 2, 3], [1, 1, 1], "0034"), "a record has producer index 3"),
        (order_of([2, 1], [3, 2], "000c"), "its producers do not ascend"),
        (order_of([1, 1], [3, 2], "000c"), "its producers do not ascend"),
        (replace(A_B_A, counts=(5, 0)), "a count is below 1"),
        (replace(A_B_A, counts=(5,)), "it has 2 producers and 1 counts"),
        (replace(LONG_RUNS, encoded=b"\x01"), "the last run is cut short"),
        (replace(LONG_RUNS, encoded=LONG_RUNS.encoded + b"\x80"), "the last run is cut short"),
        (replace(LONG_RUNS, encoded=b"\x01\x8f"), "the last run is cut short"),
        (
            replace(LONG_RUNS, encoded=LONG_RUNS.encoded + b"\x00"),
            r"the encoded counts are \{1: 30, 2: 201\}",
        ),
        (replace(LONG_RUNS, encoded=LONG_RUNS.encoded[:-1]), r"the encoded counts are \{2: 200\}"),
        (replace(LONG_RUNS, encoded=b"\x01\x8f\x03\x9d\x00"), "a run takes more bytes than it needs"),
        (replace(LONG_RUNS, encoded=b"\x01" + b"\xff" * 9 + b"\x01"), "a run takes 10 bytes; 9 is the most"),
    ],
)
@BOTH_WAYS
def test_what_no_encoding_gives_is_broken_and_says_why(
    order: SegmentOrder, what: str, few_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "_FEW_RECORDS", few_records)
    with pytest.raises(Broken, match=f"order cannot be decoded: {what}") as broken:
        decode_order(order)
    assert broken.value.why == "Without its order the segment cannot be replayed."
    assert broken.value.tries == ("zerotail journal verify", "zerotail journal compare")


@pytest.mark.parametrize(
    ("few_records", "what"),
    [
        (0, "a run has 9223372036854775808 records"),
        (2**62, "the encoded counts are {1: 18446744073709551617, 2: 2}"),
    ],
)
def test_runs_so_long_that_their_sum_runs_over_to_the_right_count_are_broken(
    few_records: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "_FEW_RECORDS", few_records)
    endless = "ff" * 8 + "7f"
    with pytest.raises(Broken, match=re.escape(what)):
        decode_order(order_of([1, 2], [1, 2], "01" + "00" + "00" + endless + "00" + endless))


def test_a_segments_order_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        A_B_A.encoded = b""  # type: ignore[misc]


def test_short_and_long_segments_differ_at_64_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    shorter, longer = Runs.of_records([1, 2, 2] * 21), Runs.of_records([1, 2] * 32)
    assert (shorter.records, longer.records) == (63, 64)
    monkeypatch.setattr(segment, "_encode_few", refuse)
    monkeypatch.setattr(segment, "_unpack_few", refuse)
    assert decode_order(encode_order(longer)) == longer
    with pytest.raises(AssertionError):
        encode_order(shorter)


def test_runs_of_short_and_of_long_segments_are_read_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter, longer = encode_order(Runs.of([(1, 31), (2, 32)])), encode_order(Runs.of([(1, 32), (2, 32)]))
    assert (shorter.encoded[0], longer.encoded[0]) == (RUNS, RUNS)
    few, many = Runs.of([(1, 1)]), Runs.of([(2, 2)])
    monkeypatch.setattr(segment, "_runs_of_few", lambda *_: few)
    monkeypatch.setattr(segment, "_runs_of_many", lambda *_: many)
    assert (decode_order(shorter), decode_order(longer)) == (few, many)
