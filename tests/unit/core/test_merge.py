"""The merge of producers' queues into the order of the journal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from zerotail.core import merge as module
from zerotail.core.identity import Offset, Position, ProducerNumber, Serial
from zerotail.core.merge import Merge
from zerotail.core.order import Order, Runs
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

A, B = ProducerNumber(1), ProducerNumber(2)
NOTES = Order(Runs.of([(A, 2), (B, 2), (A, 1)]))
"""A1 A2 B1 B2 A3."""


def piece(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, type=pa.string())})


def values(merge: Merge) -> list[str]:
    return [value for batch in merge.ready() for value in batch.column("value").to_pylist()]


def numbers(*each: int) -> np.typing.NDArray[np.int64]:
    return np.array(each, dtype=np.int64)


def test_records_leave_as_soon_as_everything_before_them_is_at_hand() -> None:
    merge = Merge(NOTES)
    assert (merge.blocked_on(), merge.position) == ((A, 1), 0)
    merge.put(B, piece("b1"))
    assert (values(merge), merge.blocked_on(), merge.position) == ([], (A, 1), 0)
    merge.put(A, piece("a1", "a2", "a3"))
    assert merge.complete_to() == 3
    assert (values(merge), merge.blocked_on(), merge.position) == (["a1", "a2", "b1"], (B, 2), 3)
    merge.put(B, piece("b2"))
    assert (values(merge), merge.blocked_on(), merge.position) == (["b2", "a3"], None, 5)


def test_an_order_in_the_middle_of_history_begins_behind_its_vector() -> None:
    merge = Merge(Order(Runs.of([(A, 1), (B, 1)]), before={A: Serial(7)}, first_position=40))
    assert (merge.expected(A), merge.expected(B), merge.next_serial(A)) == (8, 1, 8)
    assert (merge.blocked_on(), merge.position) == ((A, 8), 40)
    merge.put(A, piece("a8"))
    assert (merge.expected(A), merge.next_serial(A)) == (9, 8)
    assert values(merge) == ["a8"]
    assert (merge.expected(A), merge.next_serial(A)) == (9, 9)


def test_an_empty_order_is_complete_at_once() -> None:
    merge = Merge(Order(Runs.of([]), before={A: Serial(3)}, first_position=9))
    assert (merge.blocked_on(), merge.complete_to(), values(merge)) == (None, 9, [])
    assert Merge(Order(Runs.of([]))).blocked_on() is None


def test_records_behind_the_orders_end_are_not_taken() -> None:
    merge = Merge(NOTES)
    merge.put(B, piece("b1", "b2", "b3"))
    merge.put(B, piece("b4"))
    assert (merge.held_messages(B), merge.expected(B)) == (2, 3)
    merge.put(A, piece("a1", "a2", "a3", "a4"))
    assert values(merge) == ["a1", "a2", "b1", "b2", "a3"]


def test_nothing_put_changes_nothing() -> None:
    merge = Merge(NOTES)
    merge.put(A, piece())
    assert (merge.expected(A), merge.held_bytes(A), merge.blocked_on()) == (1, 0, (A, 1))


def test_arrivals_can_be_tried_without_putting_them() -> None:
    merge = Merge(NOTES)
    assert merge.complete_to({A: 2}) == 2
    assert merge.complete_to({A: 2, B: 1}) == 3
    assert merge.complete_to({A: 3, B: 2}) == 5
    assert merge.complete_to({B: 2}) == 0
    assert merge.complete_to() == 0


def test_a_pieces_bytes_are_held_until_its_last_record_leaves() -> None:
    merge = Merge(NOTES)
    whole = piece("a1", "a2", "a3")
    merge.put(A, whole)
    merge.put(B, piece("b1"))
    assert (merge.held_messages(A), merge.held_bytes(A)) == (3, whole.nbytes)
    assert values(merge) == ["a1", "a2", "b1"]
    assert (merge.held_messages(A), merge.held_bytes(A)) == (1, whole.nbytes)
    assert (merge.held_messages(B), merge.held_bytes(B)) == (0, 0)
    merge.put(B, piece("b2"))
    assert values(merge) == ["b2", "a3"]
    assert (merge.held_messages(A), merge.held_bytes(A)) == (0, 0)


def test_dropping_forgets_what_has_not_left_and_tells_where_its_oldest_piece_was_read() -> None:
    merge = Merge(NOTES)
    merge.put(A, piece("a1", "a2"), Offset(70))
    merge.put(A, piece("a3"), Offset(80))
    assert values(merge) == ["a1", "a2"]
    assert merge.drop(A) == 80
    assert (merge.held_messages(A), merge.held_bytes(A), merge.expected(A)) == (0, 0, 3)
    merge.put(B, piece("b1", "b2"))
    assert (values(merge), merge.blocked_on()) == (["b1", "b2"], (A, 3))
    merge.put(A, piece("a3"))
    assert values(merge) == ["a3"]


def test_dropping_a_piece_that_has_partly_left_tells_where_the_whole_piece_was_read() -> None:
    merge = Merge(NOTES)
    merge.put(A, piece("a1", "a2", "a3"), Offset(70))
    assert values(merge) == ["a1", "a2"]
    assert merge.drop(A) == 70
    merge.put(A, piece("a3"))
    merge.put(B, piece("b1", "b2"))
    assert values(merge) == ["b1", "b2", "a3"]


def test_only_records_that_are_just_the_next_count_as_in_order() -> None:
    merge = Merge(NOTES)
    assert merge.count_in_order(numbers(), numbers()) == 0
    assert merge.count_in_order(numbers(B), numbers(1)) == 0
    assert merge.count_in_order(numbers(A), numbers(2)) == 0
    assert merge.count_in_order(numbers(A, B), numbers(1, 1)) == 1
    assert merge.count_in_order(numbers(A, A, B, B, A), numbers(1, 2, 1, 2, 3)) == 5
    assert merge.count_in_order(numbers(A, A, B, B, A, A), numbers(1, 2, 1, 2, 3, 4)) == 5
    assert merge.count_in_order(numbers(A, A, B, A), numbers(1, 2, 1, 3)) == 3
    assert merge.count_in_order(numbers(A, A, B, B), numbers(1, 2, 1, 1)) == 3


def test_a_record_at_hand_ends_what_is_in_order_even_if_it_is_read_again() -> None:
    merge = Merge(NOTES)
    merge.put(B, piece("b1"))
    assert merge.count_in_order(numbers(A, A, B, B), numbers(1, 2, 1, 2)) == 2


def test_records_in_order_pass_without_being_put_in() -> None:
    merge = Merge(NOTES)
    merge.pass_by(3)
    assert (merge.position, merge.blocked_on()) == (3, (B, 2))
    assert (merge.expected(A), merge.expected(B), merge.next_serial(B)) == (3, 2, 2)
    merge.put(A, piece("a3"))
    merge.pass_by(1)
    assert values(merge) == ["a3"]
    assert (merge.blocked_on(), merge.position) == (None, 5)


def test_long_runs_leave_as_slices_that_share_their_pieces_memory() -> None:
    rows = module._LONG_RUN
    merge = Merge(Order(Runs.of([(A, rows), (B, rows)])))
    whole = piece(*map(str, range(rows)))
    merge.put(A, whole)
    merge.put(B, piece(*(f"b{row}" for row in range(rows))))
    batches = [*merge.ready()]
    assert [batch.num_rows for batch in batches] == [rows, rows]
    assert batches[0].column(0).buffers()[2].address == whole.column(0).buffers()[2].address


def test_short_runs_leave_gathered_in_one_batch() -> None:
    rows = module._LONG_RUN
    merge = Merge(Order(Runs.of([(A, rows - 1), (B, rows)])))
    merge.put(A, piece(*(f"a{row}" for row in range(rows))))
    merge.put(B, piece(*(f"b{row}" for row in range(rows))))
    (batch,) = merge.ready()
    expected = [f"a{row}" for row in range(rows - 1)] + [f"b{row}" for row in range(rows)]
    assert batch.column(0).to_pylist() == expected


def test_what_is_ready_leaves_in_batches_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 4)
    order = Order(Runs.of([(A, 1), (B, 2)] * 3))
    merge = Merge(order)
    merge.put(A, piece("a1", "a2", "a3"))
    merge.put(B, piece("b1", "b2", "b3"))
    merge.put(B, piece("b4", "b5", "b6"))
    batches = [batch.column(0).to_pylist() for batch in merge.ready()]
    assert batches == [["a1", "b1", "b2", "a2"], ["b3", "b4", "a3", "b5"], ["b6"]]


def test_what_is_ready_leaves_in_batches_of_limited_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    order = Order(Runs.of([(A, 1), (B, 1)] * 4))
    for most_bytes, sizes in ((1, [1] * 8), (312, [3, 3, 2]), (831, [7, 1]), (832, [8]), (10**9, [8])):
        monkeypatch.setattr(module, "BYTES_PER_BATCH", most_bytes)
        merge = Merge(order)
        for producer in (A, B):
            merge.put(producer, piece(*["x" * 100] * 4))
        assert merge.held_bytes(A) + merge.held_bytes(B) == 832
        assert [batch.num_rows for batch in merge.ready()] == sizes


def test_the_refusal_names_the_record_and_its_position_and_what_to_type() -> None:
    merge = Merge(Order(Runs.of([(A, 1), (B, 1)]), first_position=40))
    merge.put(A, piece("a1"))
    refusal = merge.refusal()
    assert isinstance(refusal, Refused)
    assert refusal.message == "record (producer 2, serial 1), at position 41 of the journal, is missing"
    assert "would change the order behind it" in refusal.why
    assert [line.split("  ")[0] for line in refusal.tries] == [
        "zerotail restore plan",
        "zerotail restore run",
    ]


def test_positions_are_those_of_the_order() -> None:
    assert Merge(Order(Runs.of([(A, 1)]), first_position=3)).position == Position(3)
