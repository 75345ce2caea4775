"""A cursor gives the records before its end, whatever else the client says in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.errors import Unavailable
from zerotail.kafka import log_cursor
from zerotail.kafka.log_cursor import LogCursor

pytestmark = pytest.mark.fast


class Client:
    """A client that gives these polls in turn, and nothing afterwards."""

    polls: Iterator[list[Message]] = iter(())

    def __init__(self, _settings: dict[str, Any]) -> None:
        self.assigned: list[TopicPartition] = []

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned = places

    def consume(self, most: int, _seconds: float) -> list[Message]:
        messages = next(self.polls, [])
        assert len(messages) <= most
        return messages


def record(offset: int) -> Message:
    return Message(topic="orders", partition=0, offset=offset, value=b"%d" % offset)


def said(code: int) -> Message:
    return Message(topic="orders", partition=0, error=KafkaError(code))


@pytest.fixture
def cursor(monkeypatch: pytest.MonkeyPatch) -> LogCursor:
    monkeypatch.setattr(log_cursor, "Consumer", Client)
    monkeypatch.setattr(log_cursor, "_ANSWER_SECONDS", 0.05)
    return LogCursor({}, TopicName("orders"), PartitionNumber(0))


def read(cursor: LogCursor, start: int, end: int, *polls: list[Message]) -> list[int | None]:
    Client.polls = iter(polls)
    cursor.move(Offset(start), Offset(end))
    offsets: list[int | None] = []
    while (messages := cursor.poll(10)) is not None:
        assert messages, "a poll that returns has found something"
        offsets += [one.offset() for one in messages]
    return offsets


def test_the_records_up_to_the_end_and_no_further(cursor: LogCursor) -> None:
    assert read(cursor, 5, 8, [record(5)], [], [record(6), record(7)]) == [5, 6, 7]


def test_behind_a_marker_the_client_may_give_more_than_was_asked_for(cursor: LogCursor) -> None:
    # Offset 6 is the marker of a transaction, and 7 is what came behind the end that was settled.
    assert read(cursor, 5, 7, [record(5), record(7)]) == [5]


def test_markers_at_the_end_are_told_by_the_client_and_take_no_record_with_them(cursor: LogCursor) -> None:
    assert read(cursor, 5, 9, [record(5), said(KafkaError._PARTITION_EOF)]) == [5]
    assert read(cursor, 5, 9, [record(5), record(6)], [said(KafkaError._PARTITION_EOF)]) == [5, 6]


def test_moved_it_begins_anew(cursor: LogCursor) -> None:
    assert read(cursor, 5, 6, [record(5)]) == [5]
    assert read(cursor, 3, 5, [record(3), record(4)]) == [3, 4]


def test_where_nothing_is_nothing_is_asked(cursor: LogCursor) -> None:
    assert read(cursor, 5, 5, [record(5)]) == []


def test_any_other_error_stops_it(cursor: LogCursor) -> None:
    with pytest.raises(Unavailable, match="orders cannot be read"):
        read(cursor, 5, 9, [record(5), said(KafkaError.OFFSET_OUT_OF_RANGE)])


def test_silence_is_told(cursor: LogCursor) -> None:
    with pytest.raises(Unavailable, match="no answer in time"):
        read(cursor, 5, 9)
