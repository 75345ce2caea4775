"""The proof of a restored sequence: it follows the recorded chain, and names the first place that differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from support.disasters import EPOCH, Day, Name, make_day, value_of
from zerotail.core.chain import Chain
from zerotail.core.identity import Position, SegmentNumber
from zerotail.core.record import digest_column, encode_column
from zerotail.core.restoration.proof import DifferentSegmentError, Proof
from zerotail.errors import Broken

pytestmark = pytest.mark.fast


def batch_of(names: Sequence[Name], values: Sequence[bytes] | None = None) -> pa.RecordBatch:
    said = [value_of(name) for name in names] if values is None else list(values)
    column = pa.array(said, pa.binary())
    headers = encode_column(EPOCH, [name[0] for name in names], [name[1] for name in names], digest_column(column))
    return pa.record_batch({"zt": headers, "offset": list(range(len(names))), "value": column})


def check(proof: Proof, names: Sequence[Name], cut: int) -> None:
    for begin in range(0, len(names), cut):
        proof.check(batch_of(names[begin : begin + cut]))


DAY = make_day(3, 400, producers=3)


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_sequence_as_it_was_taken_comes_to_the_recorded_chain(cut: int) -> None:
    proof = Proof(DAY.journal, values=True)
    check(proof, DAY.taken, cut)
    proof.require_complete()
    assert (proof.chain, proof.position, proof.segments) == (DAY.head.chain, 400, len(DAY.rows))


def test_a_proof_may_begin_at_any_segment() -> None:
    for row in DAY.rows:
        proof = Proof(DAY.journal, row.segment)
        check(proof, DAY.taken[row.first_position :], 50)
        assert proof.chain == DAY.head.chain


def test_a_record_with_another_value_stops_it_at_its_segment() -> None:
    values = [value_of(name) for name in DAY.taken]
    values[123] = b"another"
    proof = Proof(DAY.journal)
    with pytest.raises(DifferentSegmentError) as stopped:
        proof.check(batch_of(DAY.taken, values))
    assert stopped.value.row.first_position <= 123 < stopped.value.row.next_position
    assert proof.proven_position == stopped.value.row.first_position
    assert stopped.value.code == "ZT641"


def test_a_value_that_is_not_what_its_header_says_is_named() -> None:
    lying = batch_of(DAY.taken)
    values = [value_of(name) for name in DAY.taken]
    values[77] = b"another"
    lying = lying.set_column(2, "value", pa.array(values, pa.binary()))
    producer, serial = DAY.taken[77]
    Proof(DAY.journal).check(lying)  # the headers alone are right
    with pytest.raises(Broken, match=rf"producer {producer}, serial {serial}\) at position 77 ") as stopped:
        Proof(DAY.journal, values=True).check(lying)
    assert stopped.value.code == "ZT642"


def test_two_records_that_changed_places_stop_it() -> None:
    place = next(i for i in range(len(DAY.taken) - 1) if DAY.taken[i][0] != DAY.taken[i + 1][0])
    taken = list(DAY.taken)
    taken[place], taken[place + 1] = taken[place + 1], taken[place]
    with pytest.raises(Broken, match=f"at position {place} of settle partition 0 stands the record"):
        Proof(DAY.journal).check(batch_of(taken))


def test_a_sequence_that_ends_early_is_not_complete() -> None:
    proof = Proof(DAY.journal)
    check(proof, DAY.taken[:-1], 50)
    with pytest.raises(Broken, match="ends at position 399; the journal ends at 400"):
        proof.require_complete()


def spoil(day: Day, place: int, **changes: object) -> Day:
    rows = list(day.rows)
    rows[place] = replace(rows[place], **changes)  # type: ignore[arg-type]
    return replace(day, rows=tuple(rows))


def test_a_chain_that_was_changed_is_found_at_its_segment() -> None:
    day = spoil(DAY, 2, chain=Chain(bytes(32)))
    with pytest.raises(DifferentSegmentError, match="segment 3 of settle partition 0"):
        check(Proof(day.journal), day.taken, 50)


def test_a_missing_segment_is_named_before_anything_is_read() -> None:
    gone = replace(DAY, rows=DAY.rows[:2] + DAY.rows[3:])
    with pytest.raises(Broken, match=r"damaged at segment 3, position \d+: segment 3 is missing") as stopped:
        _ = gone.journal
    assert stopped.value.code == "ZT640"


def test_segments_missing_at_the_end_are_named() -> None:
    with pytest.raises(Broken, match=f"segment {len(DAY.rows)} is missing; the head stands at"):
        _ = replace(DAY, rows=DAY.rows[:-1]).journal


def test_positions_and_serials_that_do_not_go_on_are_named() -> None:
    with pytest.raises(Broken, match="it begins at position 7"):
        _ = spoil(DAY, 1, first_position=Position(7)).journal
    with pytest.raises(Broken, match="goes on with serial 99"):
        _ = spoil(DAY, 1, first_serials=(99,) * len(DAY.rows[1].first_serials)).journal
    with pytest.raises(Broken, match="segment 2 is missing; the next one there is 5"):
        _ = spoil(DAY, 1, segment=SegmentNumber(5)).journal
