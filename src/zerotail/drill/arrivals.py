"""Which instruction stands behind each message that arrived outside, when it was given and when it arrived.

The journal says which record has which position, the example emits one message per record, so number n of a partition
is position n - 1; the row says when it was given, the receiver's record when its message arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zerotail.core.identity import PartitionNumber, StageName
from zerotail.deadline import Deadline
from zerotail.lab.receiver.protocol import Attempt, MessageAttempt, Verdict
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.segment import all_rows

_GIVEN = """
select serial, extract(epoch from submitted_at)::float from zerotail.instruction
 where producer = %s and partition = %s and submitted_at >= to_timestamp(%s)
"""
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message, in seconds since 1970."""

    given_at: float
    arrived_at: float
    partition: int = 0
    number: int = 0
    producer: int = 0


def read_arrivals(
    database: str, attempts: Iterable[Attempt], stage: StageName, channel: str, since: float
) -> list[Arrival]:
    """Every accepted message of the receiver's record whose instruction was given after `since`."""
    arrived: dict[int, dict[int, float]] = {}
    for attempt in attempts:
        if (
            isinstance(attempt, MessageAttempt)
            and attempt.channel == channel
            and attempt.verdict is Verdict.ACCEPTED
            and attempt.unix_seconds >= since
        ):
            arrived.setdefault(attempt.partition, {}).setdefault(attempt.number, attempt.unix_seconds)
    with session(database, Deadline.after(_PATIENCE_SECONDS)) as connection:
        return [
            arrival
            for partition, by_number in arrived.items()
            for arrival in _of_partition(connection, stage, PartitionNumber(partition), by_number, since)
        ]


def _of_partition(
    connection: Connection, stage: StageName, partition: PartitionNumber, arrived: dict[int, float], since: float
) -> Iterator[Arrival]:
    given: dict[int, dict[int, float]] = {}
    for row in all_rows(connection, stage, partition):
        if row.next_position <= min(arrived) - 1:
            continue
        position = int(row.first_position)
        for producer, first, count in row.runs():
            if producer not in given:
                given[producer] = dict(connection.execute(_GIVEN.encode(), (producer, partition, since)).fetchall())
            for step in range(count):
                at, given_at = arrived.get(position + 1), given[producer].get(first + step)
                if at is not None and given_at is not None:
                    yield Arrival(given_at, at, partition, position + 1, producer)
                position += 1
