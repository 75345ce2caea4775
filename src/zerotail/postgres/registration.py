"""Who takes part: producers get their numbers, stages their heads. Asking again changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zerotail.core.identity import ChannelName, PartitionNumber, ProducerNumber, SiteName, StageName, TopicName
from zerotail.ports import Standing
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.journal import create_head
from zerotail.postgres.lineage import require_at_work
from zerotail.postgres.transaction import Declined

# Tables of before do not say who numbers, and programs are renewed before tables are.
_KNOWN = """
select one.producer, to_jsonb(one) ->> 'serials', topic, consumer, channel, source_partition
  from zerotail.producer as one where name = %s
"""
_INSERT = """
insert into zerotail.producer (producer, name, topic, consumer, channel, source_partition)
values (%s, %s, %s, %s, %s, %s)
"""
_SAY_WHO_NUMBERS = "update zerotail.producer set serials = %s where producer = %s"


@dataclass(frozen=True, slots=True)
class Registration:
    """A producer, or the outbox of an upstream stage's partition, which is one toward the topic it writes to."""

    name: str
    topic: TopicName
    consumer: StageName
    channel: ChannelName | None = None
    source_partition: int = 0
    serials: str = ""
    """Who numbers its instructions: `given` or `numbered`; empty where it has none of its own."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The producers' numbers by name, and where the database stands."""

    standing: Standing
    numbers: Mapping[str, ProducerNumber]


def lane_name(stage: StageName, channel: ChannelName, partition: int) -> str:
    """The name, as a producer, of a stage's partition toward the topic of one of its channels."""
    return f"{stage}/{channel}/{partition}"


def register(
    connection: Connection, site: SiteName, producers: Iterable[Registration], partitions: Mapping[StageName, int]
) -> Registered:
    """Number the producers and make the heads, as far as they are not there yet."""
    standing = require_at_work(connection, site)
    connection.execute(b"select pg_advisory_xact_lock(hashtextextended('zerotail.producer', 0))")
    numbers = {wanted.name: _number(connection, wanted) for wanted in producers}
    for stage, count in partitions.items():
        for partition in range(count):
            create_head(connection, stage, PartitionNumber(partition), ())
    return Registered(standing, numbers)


def find_numbers(connection: Connection, names: Sequence[str]) -> dict[str, ProducerNumber]:
    """The numbers of those producers that are registered."""
    rows = connection.execute(
        b"select name, producer from zerotail.producer where name = any(%s)", (list(names),)
    ).fetchall()
    return dict(rows)


def _number(connection: Connection, wanted: Registration) -> ProducerNumber:
    meant = (wanted.topic, wanted.consumer, wanted.channel or "", wanted.source_partition)
    known = connection.execute(_KNOWN.encode(), (wanted.name,)).fetchone()
    if known is None:
        (last,) = one_row(connection, "select coalesce(max(producer), 0) from zerotail.producer")
        connection.execute(_INSERT.encode(), (int(last) + 1, wanted.name, *meant))
        known = one_row(connection, _KNOWN, (wanted.name,))
    number, serials, *said = known
    if tuple(said) != meant:
        raise Declined(
            f"producer {wanted.name} is registered for topic {said[0]} and stage {said[1]}, "
            f"and is now said to be for topic {meant[0]} and stage {meant[1]}"
        )
    if serials not in (None, wanted.serials):
        connection.execute(_SAY_WHO_NUMBERS.encode(), (wanted.serials, number))
    return ProducerNumber(number)
