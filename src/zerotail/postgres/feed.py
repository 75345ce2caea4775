"""Instructions: how they come in, how they are numbered, how producers read them, and requests to send them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zerotail.core.identity import EmissionNumber, PartitionNumber, ProducerNumber, Serial, SiteName, StageName
from zerotail.core.intake import MOST_VALUE_BYTES, find_unfit
from zerotail.ports import Done, Fed, Feed, ReadFeed, RequestAgain, Standing, Submit, Submitted
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.journal import find_head
from zerotail.postgres.lineage import OTHER_EPOCH, read_verified, require_live, require_own_timeline
from zerotail.postgres.outbox import read_messages
from zerotail.postgres.poison import read_poison
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

_LOCK = "select pg_advisory_xact_lock(hashtextextended('zerotail.instruction', 0) + %s * 65536 + %s)"
# What waits is asked for by its turn, so that the answer comes from an index, however many wait for other places.
_PLACES = """
select producer.producer, head.partition, head.stage, coalesce((head.vector ->> producer.producer::text)::bigint, 0),
       coalesce(request.number, 0), producer.name = any(%s),
       exists (select from zerotail.poison where poison.stage = head.stage and poison.partition = head.partition
                  and decision = '' and position >= 0
                  and serial > coalesce((head.vector ->> poison.producer::text)::bigint, 0)),
       coalesce((select max(serial) from zerotail.instruction as row
                  where row.producer = producer.producer and row.partition = head.partition), 0),
       (select true from zerotail.submission as waiting
         where waiting.producer = producer.producer and waiting.partition = head.partition
         order by turn limit 1) is not null,
       door.stands, door.decided
  from zerotail.producer join zerotail.head on head.stage = producer.consumer
  left join zerotail.request on request.producer = producer.producer and request.partition = head.partition
 cross join lateral (
       select min(serial) filter (where decision = '' and position < 0) as stands,
              coalesce(array_agg(serial order by serial)
                       filter (where decision in ('skip', 'replace')), '{}') as decided
         from zerotail.poison
        where poison.stage = head.stage and poison.partition = head.partition
          and poison.producer = producer.producer and at_door
          and serial > coalesce((head.vector ->> producer.producer::text)::bigint, 0)) as door
 where producer.channel = '' and producer.name = any(%s)
 order by 1, 2
"""
_FIND = """
select serial, partition, partition = %s and value = %s from zerotail.instruction where producer = %s and id = %s
"""
_PARTITIONS = """
select head.partition from zerotail.producer join zerotail.head on head.stage = producer.consumer
 where producer.producer = %s
"""
_LAST = "select coalesce(max(serial), 0) from zerotail.instruction where producer = %s and partition = %s"
# What is known is asked row by row. `not exists` may become a join, and the planner of a database that was promoted a
# moment ago, without statistics, would read the whole history for it. What is taken is found again by its place in the
# table: rows that wait are never updated, so places do not change.
_NUMBER = """
with taken as (
    delete from zerotail.submission as waiting using (
        select ctid from zerotail.submission where producer = %s and partition = %s
         order by turn limit %s) as next
     where waiting.ctid = next.ctid
    returning waiting.*
), looked_up as (
    select taken.*, known.serial, known.partition as other,
           known.partition = taken.partition and known.value = taken.value as same
      from taken left join lateral (
           select serial, partition, value from zerotail.instruction as known
            where known.producer = taken.producer and known.id = taken.id limit 1) as known on true
), set_aside as (
    insert into zerotail.set_aside (producer, partition, id, value, submitted_at, reason)
    select producer, partition, id, value, submitted_at,
           case when serial is null then format('its value has %%s bytes: no record can hold it', octet_length(value))
                else format('its identifier belongs to serial %%s of partition %%s', serial, other) end
      from looked_up where not same or serial is null and octet_length(value) > %s
)
insert into zerotail.instruction (producer, partition, serial, id, value, submitted_at)
select producer, partition, %s - 1 + row_number() over (order by turn), id, value, submitted_at
  from looked_up where serial is null and octet_length(value) <= %s
"""
_ROW_BY_ROW = "set local enable_seqscan = off; set local zerotail.numbering = on"
"""A plan that was made for a short queue would read all of a long one for every piece. And it takes nothing in, so it
goes on while a site drains.
"""


def submit(connection: Connection, effect: Submit, site: SiteName) -> Submitted:
    """Store an instruction and number it; one that is there already is found.

    Declined when its identifier belongs to another instruction, the stage behind the producer has no such partition, or
    no record can hold its value: whoever is told a serial is told that it will be processed.
    """
    known = _find_same(connection, effect)
    if known is not None:
        return Submitted(read_verified(connection), known, read_position(connection))
    standing = require_live(connection, site)
    partitions = partitions_of(connection, effect.producer)
    if unfit := find_unfit(len(effect.value), len(effect.id.encode()), effect.partition, partitions):
        raise Declined(unfit)
    serial = next_serial(connection, effect.producer, effect.partition)
    stored = connection.execute(
        b"insert into zerotail.instruction (producer, partition, serial, id, value) values (%s, %s, %s, %s, %s) "
        b"on conflict (producer, id) do nothing",
        (effect.producer, effect.partition, serial, effect.id, effect.value),
    )
    if not stored.rowcount:  # somebody else submitted the same one meanwhile, and has it committed
        serial = _find_same(connection, effect) or serial
    return Submitted(standing, serial, read_position(connection))


def _find_same(connection: Connection, effect: Submit) -> Serial | None:
    """The serial of this very instruction, if it is there."""
    wanted = (effect.partition, effect.value, effect.producer, effect.id)
    found = connection.execute(_FIND.encode(), wanted).fetchone()
    if found is None:
        return None
    serial, partition, same = found
    if not same:
        raise Declined(f"its identifier belongs to another instruction, serial {serial} of partition {partition}")
    return Serial(serial)


def partitions_of(connection: Connection, producer: ProducerNumber) -> set[PartitionNumber]:
    """The partitions of the stage that takes what this producer sends."""
    return {PartitionNumber(number) for (number,) in connection.execute(_PARTITIONS.encode(), (producer,)).fetchall()}


def next_serial(connection: Connection, producer: ProducerNumber, partition: PartitionNumber) -> Serial:
    """The serial behind the last one; whoever else numbers this producer and partition waits for our commit."""
    connection.execute(_LOCK.encode(), (producer, partition))
    return Serial(last_serial(connection, producer, partition) + 1)


def last_serial(connection: Connection, producer: ProducerNumber, partition: PartitionNumber) -> Serial:
    """The last serial that the producer has in the partition; 0 before the first."""
    return Serial(int(one_row(connection, _LAST, (producer, partition))[0]))


def number_submissions(connection: Connection, producer: ProducerNumber, partition: PartitionNumber, limit: int) -> int:
    """Number rows that were inserted without a serial, in the current transaction; answers how many.

    In the order in which the database took them: each row drew its turn when it was inserted, so one that was committed
    before another was inserted comes first. Clocks have no part in it.

    Takes whatever is there, so no row is passed over because its transaction ended late; a row leaves `submission` in
    the very transaction that makes it an instruction. One whose id is an instruction already was inserted again by
    somebody who did not hear the answer: it goes, as `submit` would find it; with other bytes, or for another
    partition, it is another instruction, and is set aside, as is one that is too large and came before there was a
    limit. Declined in a database that was promoted and has no epoch of
    its own yet: there a serial would be given out that a lost row had (decision 0010).
    """
    require_own_timeline(connection)
    connection.execute(_ROW_BY_ROW.encode())
    first = next_serial(connection, producer, partition)
    largest = MOST_VALUE_BYTES
    numbered = connection.execute(_NUMBER.encode(), (producer, partition, limit, largest, first, largest))
    return numbered.rowcount


def read_feed(connection: Connection, effect: ReadFeed) -> Fed:
    """Rows behind `after`, never past a gap in the serials, and how far the consumer has come."""
    feed = effect.feed
    head = find_head(connection, feed.consumer, feed.partition)
    if head is None:
        raise Declined(f"stage {feed.consumer} has no partition {feed.partition} here")
    vector = head.vector.get(feed.producer, Serial(0))
    after = vector if effect.after is None else effect.after
    values = _values_behind(connection, feed, after, effect.limit)
    request = connection.execute(
        b"select number from zerotail.request where producer = %s and partition = %s", (feed.producer, feed.partition)
    ).fetchone()
    standing = read_verified(connection)
    position = read_position(connection)
    _, stopped = read_poison(connection, feed.consumer, feed.partition, head)
    number = request[0] if request else 0
    return Fed(standing, position, vector, number, Serial(after + 1), values, stopped is not None)


def _values_behind(connection: Connection, feed: Feed, after: Serial, limit: int) -> list[bytes]:
    if feed.lane is not None:
        return read_messages(connection, feed.lane, EmissionNumber(after), limit)
    rows = connection.execute(
        b"select serial, value from zerotail.instruction where producer = %s and partition = %s and serial > %s "
        b"order by serial limit %s",
        (feed.producer, feed.partition, after, limit),
    ).fetchall()
    return [value for place, (serial, value) in enumerate(rows, after + 1) if serial == place]


def request_again(connection: Connection, effect: RequestAgain) -> Done:
    """Ask producers to send again; asking for the same serial twice is one request."""
    if read_verified(connection).epoch != effect.epoch:
        raise Declined(OTHER_EPOCH)
    for producer, serial in effect.gaps.items():
        connection.execute(
            b"insert into zerotail.request as known values (%s, %s, 1, %s) on conflict (producer, partition) "
            b"do update set number = known.number + 1, serial = excluded.serial where known.serial <> excluded.serial",
            (producer, effect.partition, serial),
        )
    return Done(read_position(connection))


def send_again(connection: Connection, producer: ProducerNumber, partition: PartitionNumber, serial: Serial) -> Done:
    """Let a producer begin again where the stage stands: a row of its own was tried apart from the others."""
    require_own_timeline(connection)
    connection.execute(
        b"insert into zerotail.request as known values (%s, %s, 1, %s) on conflict (producer, partition) "
        b"do update set number = known.number + 1, serial = excluded.serial",
        (producer, partition, serial),
    )
    return Done(read_position(connection))


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """How far the consumer of one producer and partition has come, and the last request to send again."""

    producer: ProducerNumber
    partition: PartitionNumber
    consumer: StageName
    vector: Serial
    request: int
    numbered: bool
    """Whether its rows may come without a serial."""
    stopped: bool
    """Whether the partition waits for an operator's decision about a record."""
    last: Serial
    """The last row that has a serial."""
    waiting: bool
    """Whether rows without a serial are there."""
    stands: Serial | None = None
    """The first row of which no record can be made, and about which nobody has decided."""
    decided: Sequence[Serial] = ()
    """Those about which somebody has: their records have no value."""


def look_at_feeds(
    connection: Connection, producers: Sequence[str], numbered: Sequence[str]
) -> tuple[Standing, list[FeedPlace]]:
    """The places of every partition of these producers."""
    rows = connection.execute(_PLACES.encode(), (list(numbered), list(producers))).fetchall()
    places = [
        FeedPlace(ProducerNumber(number), PartitionNumber(partition), StageName(consumer), Serial(vector), *rest)
        for number, partition, consumer, vector, *rest in rows
    ]
    return read_verified(connection), places


def last_dense_serial(
    connection: Connection, producer: ProducerNumber, partition: PartitionNumber, first: Serial, limit: int
) -> int:
    """The last serial that can be reached from `first` without a gap, at most `limit` rows on; `first` - 1 if none."""
    (last,) = one_row(
        connection,
        "select coalesce(max(serial), %s - 1) from (select serial, row_number() over (order by serial) as place "
        "from (select serial from zerotail.instruction where producer = %s and partition = %s and serial >= %s "
        "order by serial limit %s) as rows) as numbered where serial = %s - 1 + place",
        (first, producer, partition, first, limit, first),
    )
    return int(last)
