"""The order journal read back: segments with the values of their records and the messages they owe.

A journal row names its records and does not hold their values. These are instruction rows, or, where the producer is an
upstream stage, messages in that stage's outbox; both outlive whatever Kafka forgets. A producer with a transform sends
what the transform makes of the row, so whoever wants the records' values brings the transforms along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType

from zerotail.core.chain import input_content
from zerotail.core.continuity import Content, SegmentRow, Values, content_of
from zerotail.core.emission import Lane, LaneKey, unpack_messages
from zerotail.core.head import Head, Segment
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    StageName,
)
from zerotail.core.record import digest_of
from zerotail.errors import Broken
from zerotail.ports import FindPlace, JournalRead, ReadJournal
from zerotail.postgres.connection import Connection
from zerotail.postgres.journal import find_head
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.segment import chain_at, find_segment_of, read_rows
from zerotail.postgres.transaction import Declined

Transforms = Mapping[str, Callable[[bytes], bytes]]
"""What producers, by name, make of their rows."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records of a producer come from."""

    lane: Lane | None = None
    """The outbox of an upstream stage; without it, instruction rows."""
    transform: Callable[[bytes], bytes] | None = None
    decided: Mapping[Serial, bytes] = field(default_factory=dict)
    """Digests of records that were skipped or replaced."""

    def value_of(self, serial: int, stored: bytes) -> bytes:
        """What the producer made of a row. Of one that it could not take it made nothing: the row itself counts, under
        its own digest, and what was decided about that.
        """
        if self.transform is None or (
            self.decided and (digest := self.decided.get(Serial(serial))) is not None and digest == digest_of(stored)
        ):
            return stored
        return self.transform(stored)


Sources = Mapping[ProducerNumber, Source]
OwedBySegment = dict[SegmentNumber, dict[LaneKey, tuple[EmissionNumber, list[bytes]]]]

_INSTRUCTIONS = (
    "select serial, value from zerotail.instruction where producer = %s and partition = %s and serial between %s and %s"
)
_MESSAGES = (
    "select first_number, count, messages from zerotail.outbox "
    "where channel = %s and partition = %s and target = %s and first_number <= %s "
    "and first_number >= (select coalesce(max(first_number), 0) from zerotail.outbox "
    "where channel = %s and partition = %s and target = %s and first_number <= %s)"
)
_OWED = (
    "select segment, first_number, count, messages from zerotail.outbox "
    "where channel = %s and partition = %s and target = %s and first_number > %s order by first_number limit %s"
)
_DECIDED = (
    "select producer, serial, digest from zerotail.poison "
    "where stage = %s and partition = %s and decision in ('skip', 'replace')"
)
_RECORDS_AT_ONCE = 20_000
_NONE: Transforms = MappingProxyType({})


def read_journal(connection: Connection, effect: ReadJournal, transforms: Transforms = _NONE) -> JournalRead:
    """Segments behind `after`, with the values of their records."""
    head = _head(connection, effect.stage, effect.partition)
    rows = _first_few(read_rows(connection, effect.stage, effect.partition, effect.after, effect.limit))
    first_position = rows[0].first_position if rows else head.next_position
    return _journal(connection, effect, head, rows, first_position, transforms)


def find_place(connection: Connection, effect: FindPlace, transforms: Transforms = _NONE) -> JournalRead:
    """What the journal has behind a record; nothing when it does not hold the record."""
    head = _head(connection, effect.stage, effect.partition)
    place = (effect.stage, effect.partition)
    if effect.serial == 0:
        rows = read_rows(connection, *place, SegmentNumber(0), effect.limit)
        return _journal(connection, effect, head, _first_few(rows), Position(0), transforms)
    found = find_segment_of(connection, *place, effect.producer, effect.serial)
    if found is None:
        return _journal(connection, effect, head, [], head.next_position, transforms)
    rows = read_rows(connection, *place, SegmentNumber(found - 1), effect.limit)
    position = Position(_position_in(rows[0], effect.producer, effect.serial) + 1)
    if position == rows[0].next_position:
        rows = rows[1:]
    return _journal(connection, effect, head, _first_few(rows), position, transforms)


def find_sources(
    connection: Connection, stage: StageName, partition: PartitionNumber, transforms: Transforms = _NONE
) -> Sources:
    """Where the records of a partition's producers come from."""
    rows = connection.execute(
        b"select producer, name, channel, source_partition from zerotail.producer where consumer = %s", (stage,)
    ).fetchall()
    decided: dict[int, dict[Serial, bytes]] = {}
    for producer, serial, digest in connection.execute(_DECIDED.encode(), (stage, partition)).fetchall():
        decided.setdefault(producer, {})[Serial(serial)] = bytes(digest)
    return {
        ProducerNumber(producer): Source(
            Lane(ChannelName(channel), PartitionNumber(source), partition) if channel else None,
            transforms.get(name),
            decided.get(producer, {}),
        )
        for producer, name, channel, source in rows
    }


def read_values(
    connection: Connection, sources: Sources, partition: PartitionNumber, rows: Iterable[SegmentRow]
) -> Values:
    """The values of all records of these segments; what has no row is left out."""
    wanted: dict[ProducerNumber, tuple[Serial, Serial]] = {}
    for row in rows:
        for producer, first, last in row.serial_ranges():
            known = wanted.get(producer, (first, last))
            wanted[producer] = (min(known[0], first), max(known[1], last))
    values = {}
    for producer, (first, last) in wanted.items():
        source = sources.get(producer, Source())
        stored = read_range(connection, source.lane, producer, partition, first, last)
        if source.transform is not None:
            stored = {serial: source.value_of(serial, value) for serial, value in stored.items()}
        values[producer] = stored
    return values


def read_range(
    connection: Connection,
    lane: Lane | None,
    producer: ProducerNumber,
    partition: PartitionNumber,
    first: Serial,
    last: Serial,
) -> dict[Serial, bytes]:
    """The stored values of one producer from serial `first` to `last`."""
    if lane is None:
        found = connection.execute(_INSTRUCTIONS.encode(), (producer, partition, first, last), binary=True)
        return dict(found.fetchall())
    messages: dict[Serial, bytes] = {}
    packs = connection.execute(_MESSAGES.encode(), (*lane, last, *lane, first), binary=True)
    for first_number, count, packed in packs:
        for number, message in enumerate(_unpacked(packed, count) or (), first_number):
            if first <= number <= last:
                messages[Serial(number)] = message
    return messages


def _unpacked(packed: bytes, count: int) -> list[bytes] | None:
    try:
        return unpack_messages(packed, count)
    except Broken:
        return None


def read_owed(
    connection: Connection, partition: PartitionNumber, numbers: Mapping[LaneKey, EmissionNumber], limit: int
) -> OwedBySegment:
    """What the next `limit` segments owe on each lane behind the given number, by segment."""
    owed: OwedBySegment = {}
    for lane, last in numbers.items():
        channel, target = lane
        rows = connection.execute(_OWED.encode(), (channel, partition, target, last, limit), binary=True)
        for segment, first, count, packed in rows:
            of_segment = owed.setdefault(SegmentNumber(segment), {})
            # A row that cannot be unpacked counts as one message: the chain then tells that it is not what it was.
            of_segment[lane] = (EmissionNumber(first), _unpacked(packed, count) or [packed])
    return owed


def read_contents(
    connection: Connection,
    stage: StageName,
    partition: PartitionNumber,
    rows: Iterable[SegmentRow],
    numbers: Mapping[LaneKey, EmissionNumber],
    transforms: Transforms = _NONE,
) -> Iterator[tuple[SegmentRow, Content]]:
    """Each segment with the hashes of its content; `numbers` are the last ones of every lane in front of the rows."""
    sources = find_sources(connection, stage, partition, transforms)
    last = dict(numbers)
    for some in in_portions(rows):
        values = read_values(connection, sources, partition, some)
        owed = read_owed(connection, partition, last, len(some))
        for row in some:
            content = content_of(row, values, owed.get(row.segment, {}))
            for lane, (first, count) in content.lanes.items():
                last[lane] = EmissionNumber(first + count - 1)
            yield row, content


# From version to version by the index: each plan of a takeover asks it, in the minute in which it is needed.
_VERSIONS = b"""
with recursive made (version) as (
    (select version from zerotail.segment where stage = %(stage)s order by version limit 1)
    union all
    select following.version from made cross join lateral (
        select version from zerotail.segment as one
         where one.stage = %(stage)s and one.version > made.version order by version limit 1) as following
)
select version, (select segment from zerotail.segment as one
                  where one.stage = %(stage)s and one.version = made.version order by segment limit 1)
  from made order by 2, 1
"""


@dataclass(frozen=True, slots=True)
class MadeBy:
    """A version of the code of a stage that made some of its segments, and the first of them."""

    version: str
    first_segment: int


def read_versions(connection: Connection, stage: StageName) -> list[MadeBy]:
    """Which versions made the segments of a stage."""
    return [MadeBy(*row) for row in connection.execute(_VERSIONS, {"stage": stage}).fetchall()]


def in_portions(rows: Iterable[SegmentRow]) -> Iterator[list[SegmentRow]]:
    """Segments by the handful: enough records to be worth a question, few enough to be held."""
    portion: list[SegmentRow] = []
    records = 0
    for row in rows:
        portion.append(row)
        records += row.order.records
        if records >= _RECORDS_AT_ONCE:
            yield portion
            portion, records = [], 0
    if portion:
        yield portion


def _head(connection: Connection, stage: StageName, partition: PartitionNumber) -> Head:
    head = find_head(connection, stage, partition)
    if head is None:
        raise Declined(f"stage {stage} has no partition {partition} here")
    return head


def _first_few(rows: Sequence[SegmentRow]) -> list[SegmentRow]:
    """As many segments as have no more than so many records, one at least: their values are held in memory."""
    records = accumulate(row.order.records for row in rows)
    return [row for row, until in zip(rows, records, strict=True) if row is rows[0] or until <= _RECORDS_AT_ONCE]


def _journal(
    connection: Connection,
    effect: ReadJournal | FindPlace,
    head: Head,
    rows: Sequence[SegmentRow],
    first_position: Position,
    transforms: Transforms,
) -> JournalRead:
    sources = find_sources(connection, effect.stage, effect.partition, transforms)
    stored = read_values(connection, sources, effect.partition, rows)
    segments: list[Segment] = []
    values: list[list[bytes]] = []
    previous = (
        chain_at(connection, effect.stage, effect.partition, SegmentNumber(rows[0].segment - 1)) if rows else None
    )
    for row in rows:
        if previous is None or (segments and row.segment != segments[-1].segment + 1):
            raise _broken(effect, f"segment {row.segment - 1} is missing")
        runs = row.runs()
        own = [value for run in runs for value in _run_values(effect, stored, row, *run)]
        digests = tuple(map(digest_of, own))
        content = input_content(
            row.epoch, row.segment, row.first_position, row.decided_at, row.version, runs, digests, row.decided
        )
        segments.append(
            Segment(
                row.segment,
                row.epoch,
                row.first_position,
                runs,
                digests,
                row.decided_at,
                row.version,
                previous,
                content,
                row.chain,
                row.output_chain,
                row.decided,
            )
        )
        values.append(own)
        previous = row.chain
    return JournalRead(read_standing(connection), head, segments, values, first_position)


def _run_values(
    effect: ReadJournal | FindPlace,
    stored: Values,
    row: SegmentRow,
    producer: ProducerNumber,
    first: Serial,
    count: int,
) -> list[bytes]:
    of_producer = stored[producer]
    try:
        return [of_producer[Serial(serial)] for serial in range(first, first + count)]
    except KeyError as missing:
        what = f"segment {row.segment} took serial {missing} of producer {producer}, which has no row"
        raise _broken(effect, what) from None


def _position_in(row: SegmentRow, producer: ProducerNumber, serial: Serial) -> Position:
    position = row.first_position
    for owner, first, count in row.runs():
        if owner == producer and first <= serial < first + count:
            return Position(position + serial - first)
        position = Position(position + count)
    raise Broken(f"segment {row.segment} counts serial {serial} of producer {producer}, and its order lacks it")


def _broken(effect: ReadJournal | FindPlace, what: str) -> Broken:
    return Broken(
        f"the journal of {effect.stage} partition {effect.partition} is incomplete: {what}",
        why="A record without its row cannot be applied again.",
        tries=["zerotail journal verify", "zerotail journal compare"],
    )
