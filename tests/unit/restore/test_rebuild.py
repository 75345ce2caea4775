"""A state rebuilt from records in journal order: the same by every cut, and stopped by the first difference."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from support.disasters import EPOCH, Name, make_day, value_of
from zerotail.core.identity import PartitionNumber, Position, StageName, TopicName
from zerotail.core.record import digest_column, encode_column
from zerotail.errors import Broken
from zerotail.flow.stage import Stage
from zerotail.handler import Emission, Given, Record, State
from zerotail.restore.rebuild import Rebuild, state_digest

pytestmark = pytest.mark.fast

DAY = make_day(5, 300, producers=3)


class Sum:
    """Adds serials up by producer; says nothing."""

    def keys(self, record: Record) -> list[str]:
        return [str(record.value["producer"])]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        key = str(record.value["producer"])
        state[key] = state.get(key, 0) + record.value["serial"]
        return []


STAGE = Stage(StageName("settle"), PartitionNumber(0), TopicName("p"), Sum(), "1", {})


def batch_of(names: tuple[Name, ...], values: list[bytes] | None = None) -> pa.RecordBatch:
    column = pa.array(values or [value_of(name) for name in names], pa.binary())
    headers = encode_column(EPOCH, [name[0] for name in names], [name[1] for name in names], digest_column(column))
    return pa.record_batch({"zt": headers, "offset": list(range(len(names))), "value": column})


@pytest.mark.parametrize("cut", [1, 17, 300])
def test_the_state_does_not_depend_on_how_the_records_are_cut(cut: int) -> None:
    rebuild = Rebuild(STAGE, DAY.journal)
    for begin in range(0, 300, cut):
        rebuild.consume(batch_of(DAY.taken[begin : begin + cut]))
    sums: dict[str, int] = {}
    for producer, serial in DAY.taken:
        sums[str(producer)] = sums.get(str(producer), 0) + serial
    assert {key: int(value) for key, value in rebuild.state.items()} == sums


def test_a_record_with_another_value_stops_the_replay_at_its_segment() -> None:
    values = [value_of(name) for name in DAY.taken]
    values[200] = value_of((DAY.taken[200][0], DAY.taken[199][1]))
    rebuild = Rebuild(STAGE, DAY.journal)
    segment = DAY.journal.segment_at(Position(200)).segment
    with pytest.raises(Broken, match=f"at segment {segment} gives another input chain"):
        rebuild.consume(batch_of(DAY.taken, values))


def test_the_digest_of_a_state_tells_keys_and_values_apart_in_any_order() -> None:
    assert state_digest({"a": b"1", "b": b"2"}) == state_digest({"b": b"2", "a": b"1"})
    assert state_digest({"a": b"1"}) != state_digest({"a": b"2"})
    assert state_digest({"a": b"12"}) != state_digest({"a1": b"2"})
    assert state_digest({}) == state_digest({})


def test_a_journal_whose_recorded_output_differs_stops_the_replay() -> None:
    rows = list(DAY.rows)
    rows[3] = replace(rows[3], output_chain=rows[2].output_chain)
    rebuild = Rebuild(STAGE, replace(DAY, rows=tuple(rows)).journal)
    with pytest.raises(Broken, match="at segment 4 gives another output chain"):
        rebuild.consume(batch_of(DAY.taken))
