"""Rows of the order journal, as they are written and as they are read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from zerotail.core.segment import SegmentOrder, encode_order
from zerotail.postgres.connection import Connection

_COLUMNS = (
    "segment, epoch, first_position, producers, counts, first_serials, record_order, decided_at, version, chain, "
    "output_chain"
)
_INSERT = f"""
insert into zerotail.segment (stage, partition, {_COLUMNS})
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
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
_ROWS_AT_ONCE = 64


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
    segment, epoch, position, producers, counts, firsts, order, decided_at, version, chain, output_chain = row
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
    )
