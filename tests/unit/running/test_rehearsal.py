"""Producers of a standby rehearse with ranges that have no rows, until their turn comes."""

from __future__ import annotations

from typing import Any

import pytest

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.postgres.feed import FeedPlace
from zerotail.spark.instruction_source import NOBODY, InstructionReader, SerialRange

pytestmark = pytest.mark.fast

PLACES = [
    FeedPlace(
        ProducerNumber(number), PartitionNumber(0), StageName("settle"), Serial(0), 0, False, False, Serial(7), False
    )
    for number in (1, 2)
]
LIMIT: Any = None


class Standby(InstructionReader):
    """Of a site that is live when somebody says so."""

    live = False

    def _look(self) -> tuple[bool, list[FeedPlace]]:
        return self.live, PLACES

    def _plan(self, place: FeedPlace, before: dict[str, int]) -> dict[str, int]:
        return {**before, "next": 8}


@pytest.fixture
def reader() -> Standby:
    return Standby({"dsn": "", "producers": "cards,wires", "standby": "true"})


def ranges(reader: Standby, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    planned = reader.partitions(start, end)
    return [(one.producer, one.first, one.next_serial) for one in planned if isinstance(one, SerialRange)]


def test_a_standby_rehearses_with_as_many_tasks_as_it_will_have_and_nobodys_rows(reader: Standby) -> None:
    assert reader.initialOffset() == {}
    first = reader.latestOffset({}, LIMIT)
    assert [producer for producer, _, _ in ranges(reader, {}, first)] == [NOBODY] * len(PLACES)
    second = reader.latestOffset(first, LIMIT)
    assert len(ranges(reader, first, second)) == len(PLACES), "a rehearsal is a batch of its own"


def test_after_some_rehearsals_there_is_rest(reader: Standby) -> None:
    offset: dict[str, Any] = {}
    batches = 0
    while (planned := reader.latestOffset(offset, LIMIT)) != offset:
        offset, batches = planned, batches + 1
        assert batches < 100
    assert batches > 1


def test_when_its_turn_has_come_only_instructions_are_left(reader: Standby) -> None:
    rehearsed = reader.latestOffset(reader.initialOffset(), LIMIT)
    reader.live = True
    planned = reader.latestOffset(rehearsed, LIMIT)
    assert ranges(reader, rehearsed, planned) == [(1, 1, 8), (2, 1, 8)]
