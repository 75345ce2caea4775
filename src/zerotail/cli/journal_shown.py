"""Segments of the journal in the form in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from zerotail.cli.answers import HeadShown, JournalShown, RecordShown, SegmentShown
from zerotail.core.continuity import SegmentRow, Values
from zerotail.core.head import Head
from zerotail.core.identity import Position, SegmentNumber, Serial
from zerotail.core.record import digest_of
from zerotail.postgres.connection import Connection
from zerotail.postgres.journal import find_head
from zerotail.postgres.reading import Transforms, find_sources, read_values
from zerotail.postgres.segment import read_rows
from zerotail.postgres.verification import Place

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def journal_shown(
    connection: Connection, place: Place, wanted: Callable[[int], tuple[int, int]], transforms: Transforms | None
) -> JournalShown:
    """The head of a stage and partition and some of its segments: `wanted` gives first and count for the last one.

    Records are shown when there are transforms to compute their values with, be it none at all.
    """
    stage, partition = place
    head = find_head(connection, stage, partition)
    first, count = wanted(head.segment if head else 0)
    rows = read_rows(connection, stage, partition, SegmentNumber(first - 1), count)
    values: Values | None = None
    if transforms is not None:
        values = read_values(connection, find_sources(connection, stage, partition, transforms), partition, rows)
    shown = _head_shown(head) if head else None
    return JournalShown(stage, partition, shown, tuple(_segment_shown(row, values) for row in rows))


def _head_shown(head: Head) -> HeadShown:
    vector = {str(producer): int(serial) for producer, serial in sorted(head.vector.items())}
    return HeadShown(head.epoch, head.segment, head.next_position, vector, head.chain.hex(), head.output_chain.hex())


def _segment_shown(row: SegmentRow, values: Values | None) -> SegmentShown:
    return SegmentShown(
        row.segment,
        row.epoch,
        row.first_position,
        row.next_position,
        (_BEGINNING + timedelta(microseconds=row.decided_at)).isoformat(),
        row.version,
        row.runs(),
        row.chain.hex(),
        row.output_chain.hex(),
        None if values is None else tuple(_records_shown(row, values)),
    )


def _records_shown(row: SegmentRow, values: Values) -> Iterator[RecordShown]:
    position = row.first_position
    for producer, first, count in row.runs():
        for step in range(count):
            value = values[producer].get(Serial(first + step))
            yield RecordShown(position + step, producer, first + step, "" if value is None else digest_of(value).hex())
        position = Position(position + count)
