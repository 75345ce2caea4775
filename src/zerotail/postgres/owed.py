"""What is owed: per lane, for the stage that holds back when it is too much, and for whoever waits until nothing is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from zerotail.core.emission import Lane
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    PartitionNumber,
    ProducerNumber,
    StageName,
    TopicName,
)
from zerotail.ports import Drained, Feed
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.doubt import read_open_doubts

_OWED = """
select stage, channel, partition, target, to_topic, journaled, acknowledged, intended, messages, bytes
  from zerotail.owed where {condition} order by channel, partition, target
"""
_OWED_BYTES = """
select partition, sum(bytes)::bigint from zerotail.owed
 where stage = %s and channel <> all(%s) group by partition order by partition
"""
_NOT_APPLIED = """
select (select count(*) from zerotail.submission)
     + coalesce(sum(last.serial - coalesce((head.vector ->> producer.producer::text)::bigint, 0)), 0)::bigint
  from zerotail.producer
  join zerotail.head on head.stage = producer.consumer
 cross join lateral (
       select coalesce(max(serial), 0) as serial from zerotail.instruction
        where instruction.producer = producer.producer and instruction.partition = head.partition) as last
 where producer.channel = ''
"""
_LEFT_IN_OUTBOX = """
select coalesce(sum(messages) filter (where to_topic), 0)::bigint,
       coalesce(sum(messages) filter (where not to_topic), 0)::bigint
  from zerotail.owed
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What one lane owes."""

    stage: StageName
    channel: ChannelName
    partition: PartitionNumber
    target: PartitionNumber
    to_topic: bool
    """Whether the receiver is another stage; its head is then the acknowledgement."""
    journaled: EmissionNumber
    acknowledged: EmissionNumber
    intended: EmissionNumber
    messages: int
    bytes: int
    """Of the outbox rows that hold them."""


def read_backlogs(connection: Connection, channel: ChannelName | None = None) -> list[Backlog]:
    """What every lane owes, or those of one channel."""
    condition = "%s::text is null or channel = %s"
    rows = connection.execute(_OWED.format(condition=condition).encode(), (channel, channel)).fetchall()
    return [Backlog(*row) for row in rows]


def owed_bytes(
    connection: Connection, stage: StageName, to_itself: Collection[ChannelName] = ()
) -> dict[PartitionNumber, int]:
    """Bytes that each partition of a stage owes to others: above a limit the stage takes nothing more.

    What leads back `to_itself` does not count: only the stage can make it less, by taking more (E21).
    """
    return dict(connection.execute(_OWED_BYTES.encode(), (stage, list(to_itself))).fetchall())


def fullest_bytes(connection: Connection, stage: StageName, to_itself: Collection[ChannelName]) -> int:
    """Bytes owed by that partition of a stage which owes the most: it is the one that holds the stage back."""
    return max(owed_bytes(connection, stage, to_itself).values(), default=0)


def find_partitions(connection: Connection, stage: StageName) -> list[PartitionNumber]:
    """The partitions of a stage that have a head."""
    rows = connection.execute(b"select partition from zerotail.head where stage = %s order by partition", (stage,))
    return [PartitionNumber(partition) for (partition,) in rows.fetchall()]


def find_lanes(connection: Connection, stages: Mapping[ChannelName, StageName]) -> list[Lane]:
    """The lanes of channels to the outside: one for each partition of the stage that emits on it."""
    return [
        Lane(channel, partition)
        for channel, stage in stages.items()
        for partition in find_partitions(connection, stage)
    ]


def find_feeds(connection: Connection, channels: Sequence[ChannelName]) -> list[Feed]:
    """The lanes of channels to a next stage, as feeds: one for each pair of a partition here and one there."""
    rows = connection.execute(
        b"select producer.producer, producer.topic, head.partition, producer.consumer, producer.channel, "
        b"producer.source_partition from zerotail.producer join zerotail.head on head.stage = producer.consumer "
        b"where producer.channel = any(%s) order by 1, 3",
        (list(channels),),
    ).fetchall()
    return [
        Feed(
            ProducerNumber(number),
            TopicName(topic),
            PartitionNumber(target),
            StageName(consumer),
            Lane(ChannelName(channel), PartitionNumber(source), PartitionNumber(target)),
        )
        for number, topic, target, consumer, channel, source in rows
    ]


def observe_drained(connection: Connection) -> Drained:
    """What is submitted and not applied, owed and not acknowledged, doubtful and not settled.

    A message to another stage is submitted to that one: it counts there, not as an emission. One that is on its way to
    a receiver without memory is owed, and not in doubt: its sender waits for the answer.
    """
    (instructions,) = one_row(connection, _NOT_APPLIED)
    between_stages, emissions = one_row(connection, _LEFT_IN_OUTBOX)
    return Drained(instructions + between_stages, emissions, len(read_open_doubts(connection)))
