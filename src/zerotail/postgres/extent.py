"""How far the tables reach, cut into ranges that many readers can take side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zerotail.core.emission import Lane, LaneKey
from zerotail.core.head import Head
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    PartitionNumber,
    ProducerNumber,
    SegmentNumber,
    Serial,
    StageName,
)
from zerotail.postgres.connection import Connection
from zerotail.postgres.journal import find_head

_ENDS = """
select producer, head.partition, channel, source_partition,
       case channel when ''
       then (select max(serial) from zerotail.instruction as row
              where row.producer = producer.producer and row.partition = head.partition)
       else (select max(first_number + count - 1) from zerotail.outbox as row
              where row.channel = producer.channel and row.partition = source_partition and row.target = head.partition)
       end
  from zerotail.producer join zerotail.head on head.stage = producer.consumer
 order by producer, head.partition
"""
_LAST_NUMBER = """
select first_number + count - 1 from zerotail.outbox
 where channel = %s and partition = %s and target = %s and segment < %s order by first_number desc limit 1
"""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive serials of one producer and partition."""

    producer: ProducerNumber
    partition: PartitionNumber
    lane: Lane | None
    """The outbox they are in, when they are messages of an upstream stage."""
    first: Serial
    last: Serial


def read_extents(
    connection: Connection, stages: Sequence[str]
) -> dict[tuple[StageName, PartitionNumber], SegmentNumber]:
    """The last segment of every partition of these stages."""
    rows = connection.execute(
        b"select stage, partition, segment from zerotail.head where stage = any(%s)", (list(stages),)
    ).fetchall()
    return {(StageName(stage), PartitionNumber(partition)): SegmentNumber(number) for stage, partition, number in rows}


def read_heads(connection: Connection) -> dict[tuple[StageName, PartitionNumber], Head]:
    """Every head."""
    heads = {}
    for stage, partition in connection.execute(b"select stage, partition from zerotail.head").fetchall():
        head = find_head(connection, stage, partition)
        if head is not None:
            heads[StageName(stage), PartitionNumber(partition)] = head
    return heads


def plan_row_ranges(connection: Connection, rows_each: int) -> list[RowRange]:
    """All rows that stages take: instructions, and messages of upstream stages."""
    return [*_row_ranges(connection, rows_each)]


def _row_ranges(connection: Connection, rows_each: int) -> Iterator[RowRange]:
    for producer, partition, channel, source, last in connection.execute(_ENDS.encode()).fetchall():
        target = PartitionNumber(partition)
        lane = Lane(ChannelName(channel), PartitionNumber(source), target) if channel else None
        for first in range(1, (last or 0) + 1, rows_each):
            end = Serial(min(last, first + rows_each - 1))
            yield RowRange(ProducerNumber(producer), target, lane, Serial(first), end)


def numbers_before(
    connection: Connection, stage: StageName, partition: PartitionNumber, segment: SegmentNumber
) -> dict[LaneKey, EmissionNumber]:
    """The last number of every lane in front of a segment."""
    head = find_head(connection, stage, partition)
    numbers = {}
    for channel, target in head.numbers if head else ():
        row = connection.execute(_LAST_NUMBER.encode(), (channel, partition, target, segment)).fetchone()
        numbers[channel, target] = EmissionNumber(row[0] if row else 0)
    return numbers
