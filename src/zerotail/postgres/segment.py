"""Rows of the order journal, as they are written and as they are read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from zerotail.core.chain import GENESIS, Chain
from zerotail.core.continuity import SegmentRow
from zerotail.core.head import Segment
from zerotail.core.identity import (
    Epoch,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    StageName,
)
from zerotail.core.order import Runs
from zerotail.core.poison import Decided, Decision, Remedy
from zerotail.core.segment import SegmentOrder, encode_order
from zerotail.postgres.connection import Connection

_COLUMNS = (
    "segment, epoch, first_position, producers, counts, first_serials, record_order, decided_at, version, chain, "
    "output_chain, decided"
)
_INSERT = f"""
insert into zerotail.segment (stage, partition, {_COLUMNS})
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_READ = f"""
select {_COLUMNS} from zerotail.segment where stage = %s and partition = %s and segment > %s order by segment limit %s
"""
# Backwards from the end, since whoever looks for a record has mostly seen the newest ones.
_FIND = """
select segment, found.first, found.count
  from zerotail.segment, unnest(producers, first_serials, counts) as found (producer, first, count)
 where stage = %s and partition = %s and found.producer = %s and found.first <= %s
 order by segment desc limit 1
"""
_RANGES = """
select stage, segment.partition, min(segment.segment), max(segment.segment)
  from zerotail.segment join zerotail.head using (stage, partition)
 where segment.segment <= head.segment and (%s::text is null or stage = %s)
 group by stage, segment.partition,
          segment.segment / greatest(1, %s * head.segment / greatest(1, head.next_position))
 order by stage, segment.partition, min(segment.segment)
"""
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """Consecutive segments of one stage and partition."""

    stage: StageName
    partition: PartitionNumber
    first: SegmentNumber
    last: SegmentNumber


def insert_segment(connection: Connection, stage: StageName, partition: PartitionNumber, segment: Segment) -> None:
    """Store one segment."""
    order = encode_order(Runs.of((producer, count) for producer, _, count in segment.runs))
    first: dict[ProducerNumber, Serial] = {}
    for producer, serial, _ in segment.runs:
        first.setdefault(producer, serial)
    row = (
        segment.segment,
        segment.epoch,
        segment.first_position,
        list(order.producers),
        list(order.counts),
        [first[producer] for producer in order.producers],
        order.encoded,
        segment.decided_at,
        segment.version,
        segment.chain,
        segment.output_chain,
        _encode_decided(segment.decided),
    )
    connection.execute(_INSERT.encode(), (stage, partition, *row))


def read_rows(
    connection: Connection, stage: StageName, partition: PartitionNumber, after: SegmentNumber, limit: int
) -> list[SegmentRow]:
    """The rows behind segment `after`, in order."""
    return [_decode(row) for row in connection.execute(_READ.encode(), (stage, partition, after, limit)).fetchall()]


def all_rows(
    connection: Connection,
    stage: StageName,
    partition: PartitionNumber,
    *,
    after: int = 0,
    until: SegmentNumber | None = None,
) -> Iterator[SegmentRow]:
    """The rows behind segment `after` up to `until`, a few at a time."""
    while rows := read_rows(connection, stage, partition, SegmentNumber(after), _ROWS_AT_ONCE):
        for row in rows:
            if until is not None and row.segment > until:
                return
            yield row
        after = rows[-1].segment


def plan_ranges(connection: Connection, records_each: int, stage: StageName | None = None) -> list[SegmentRange]:
    """Every journal, or that of one stage, up to its head, in ranges of about so many records."""
    rows = connection.execute(_RANGES.encode(), (stage, stage, records_each)).fetchall()
    return [
        SegmentRange(StageName(name), PartitionNumber(partition), SegmentNumber(first), SegmentNumber(last))
        for name, partition, first, last in rows
    ]


def chain_at(
    connection: Connection, stage: StageName, partition: PartitionNumber, segment: SegmentNumber
) -> Chain | None:
    """The recorded chain at a segment; None when there is no such segment."""
    if segment == 0:
        return GENESIS
    row = connection.execute(
        b"select chain from zerotail.segment where stage = %s and partition = %s and segment = %s",
        (stage, partition, segment),
    ).fetchone()
    return None if row is None else Chain(row[0])


def find_segment_of(
    connection: Connection, stage: StageName, partition: PartitionNumber, producer: ProducerNumber, serial: Serial
) -> SegmentNumber | None:
    """The segment that holds a record."""
    found = connection.execute(_FIND.encode(), (stage, partition, producer, serial)).fetchone()
    if found is None:
        return None
    segment, first, count = found
    return SegmentNumber(segment) if serial < first + count else None


def _decode(row: tuple[Any, ...]) -> SegmentRow:
    segment, epoch, position, producers, counts, firsts, order, decided_at, version, chain, output_chain, decided = row
    return SegmentRow(
        SegmentNumber(segment),
        Epoch(epoch),
        Position(position),
        SegmentOrder(tuple(map(ProducerNumber, producers)), tuple(counts), order),
        tuple(map(Serial, firsts)),
        decided_at,
        version,
        Chain(chain),
        Chain(output_chain),
        _decode_decided(decided),
    )


def _encode_decided(decided: Sequence[Decided]) -> bytes | None:
    """Nothing at all in nearly every segment, which then takes no room."""
    if not decided:
        return None
    return msgspec.json.encode([(place, one.remedy.value, one.digest, one.value) for place, one in decided])


def _decode_decided(encoded: bytes | None) -> tuple[Decided, ...]:
    if encoded is None:
        return ()
    rows = msgspec.json.decode(encoded, type=list[tuple[int, Remedy, bytes, bytes]])
    return tuple((place, Decision(remedy, digest, value)) for place, remedy, digest, value in rows)
