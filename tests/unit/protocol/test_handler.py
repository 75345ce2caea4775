"""What a handler is given, and what it may touch."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.errors import Misused
from zerotail.handler import Emission, Given, Record, State, apply_in_order, decode_value, encode_value

pytestmark = pytest.mark.fast


def test_what_is_given_is_the_same_at_every_replay() -> None:
    one, two = (Given(1_000_000, b"c" * 32, Position(4)) for _ in range(2))
    other = Given(1_000_000, b"c" * 32, Position(5))
    assert one.now == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert one.random.random() == two.random.random() != other.random.random()
    assert one.uuid() == two.uuid()
    assert one.uuid().version == 4


def test_state_shows_and_stores_only_what_was_named() -> None:
    state = State({"a": b"1", "b": b"2"})
    state.allow(["a", "c"])
    assert state["a"] == 1
    state["c"] = [3]
    assert sorted(state) == ["a", "c"]
    assert len(state) == 2
    assert state.get("c") == [3]
    with pytest.raises(Misused, match="did not name"):
        state["b"]
    with pytest.raises(Misused, match="did not name"):
        state["d"] = 1
    with pytest.raises(Misused, match="did not name"):
        del state["b"]


def test_changes_are_what_differs_also_when_changed_in_place() -> None:
    state = State({"a": b"[1]", "b": b"2", "c": b"3"})
    state.allow(["a", "b", "c", "d"])
    state["a"].append(2)
    del state["b"]
    state["d"] = 4
    assert state.changes() == {"a": b"[1,2]", "b": None, "d": b"4"}


def test_equal_values_have_equal_bytes() -> None:
    assert encode_value({"b": 1, "a": 2}) == encode_value({"a": 2, "b": 1})
    assert decode_value(encode_value({"a": [1, None]})) == {"a": [1, None]}


def test_the_target_partition_depends_on_the_key_alone() -> None:
    targets = {Emission("q", 1, key).target(4) for key in "abcdefgh"}
    assert len(targets) > 1
    assert Emission("q", 1, "a").target(4) == Emission("q", 2, "a").target(4)


def test_records_are_applied_in_order_with_the_state_before_them() -> None:
    class Count:
        def keys(self, record: Record) -> list[str]:
            return ["n"]

        def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
            state["n"] = state.get("n", 0) + record.value
            return [Emission("bank", state["n"])]

    records = [Record(ProducerNumber(1), Serial(n), Position(n), n) for n in (1, 2, 3)]
    state = State({})
    said = apply_in_order(Count(), records, state, [["n"]] * 3, 0, b"", lambda _: 1)
    assert said == {("bank", 0): [b"1", b"3", b"6"]}
    assert state.changes() == {"n": b"6"}
