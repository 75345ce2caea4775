"""What one site has stored, as DataFrames: rows with their digests, the order record by record, segments with hashes.

A task opens a session of its own and reads one range; the ranges were planned in one snapshot. Rows and segments never
change, so what the tasks read belongs together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zerotail.core.continuity import Content, SegmentRow
from zerotail.core.head import Head
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.errors import Broken
from zerotail.postgres.connection import Connection, session, snapshot
from zerotail.postgres.extent import RowRange, numbers_before, plan_row_ranges, read_heads
from zerotail.postgres.reading import Transforms, read_contents, read_range
from zerotail.postgres.segment import SegmentRange, all_rows, plan_ranges
from zerotail.postgres.verification import Place, find_places
from zerotail.spark.journal_source import records_of

ROWS = "producer int, partition int, serial long, digest binary"
APPLIED = "position long, partition int, producer int, serial long, epoch long, segment long, stage string"
SEGMENTS = (
    "stage string, partition int, segment long, first_position long, chain binary, output_chain binary, stored binary"
)
RECORDS_PER_TASK = 100_000

_CONNECT_SECONDS = 30.0
Range = TypeVar("Range")


class HashedSegment(msgspec.Struct, frozen=True):
    """A segment's row without its order, and what its content comes to."""

    row: SegmentRow
    content: Content


@dataclass(frozen=True, slots=True)
class Extent:
    """How far one site's tables reach, in one snapshot."""

    places: list[Place]
    heads: dict[Place, Head]
    segments: list[SegmentRange]
    rows: list[RowRange]


def observe_extent(dsn: str, records_per_task: int = RECORDS_PER_TASK) -> Extent:
    """Where the tables end now, cut into ranges for tasks."""
    with session(dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
        return Extent(
            [*find_places(connection)],
            read_heads(connection),
            plan_ranges(connection, records_per_task),
            plan_row_ranges(connection, records_per_task),
        )


def stored_rows(spark: SparkSession, dsn: str, extent: Extent) -> DataFrame:
    """Every instruction, and every message to another stage, with the digest of its value."""
    return _read_side_by_side(spark, dsn, extent.rows, _read_rows, ROWS)


def applied_records(spark: SparkSession, dsn: str, extent: Extent) -> DataFrame:
    """The order, record by record; segments that cannot be decoded are left out, the walk over the chain names them."""
    return _read_side_by_side(spark, dsn, extent.segments, _read_applied, APPLIED)


def hashed_segments(spark: SparkSession, dsn: str, extent: Extent, transforms: Transforms | None = None) -> DataFrame:
    """Every segment with the hashes of its content, computed from the stored values."""
    read = partial(_read_hashed, transforms=transforms or {})
    return _read_side_by_side(spark, dsn, extent.segments, read, SEGMENTS)


def _read_side_by_side(
    spark: SparkSession,
    dsn: str,
    ranges: Sequence[Range],
    read: Callable[[Connection, Range], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """One task per range."""

    def read_ranges(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in numbers for number in batch.column(0).to_pylist()):
            with session(dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
                yield from read(connection, ranges[number])

    return spark.range(0, len(ranges), 1, max(1, len(ranges))).mapInArrow(read_ranges, schema)


def _read_rows(connection: Connection, rows: RowRange) -> Iterator[pa.RecordBatch]:
    values = read_range(connection, rows.lane, rows.producer, rows.partition, rows.first, rows.last)
    yield pa.RecordBatch.from_pydict(
        {
            "producer": pa.repeat(pa.scalar(rows.producer, pa.int32()), len(values)),
            "partition": pa.repeat(pa.scalar(rows.partition, pa.int32()), len(values)),
            "serial": pa.array([*values], pa.int64()),
            "digest": pa.array([digest_of(value) for value in values.values()], pa.binary()),
        }
    )


def _read_applied(connection: Connection, segments: SegmentRange) -> Iterator[pa.RecordBatch]:
    place = (segments.stage, segments.partition)
    for row in all_rows(connection, *place, after=segments.first - 1, until=segments.last):
        with suppress(Broken):
            records = records_of(row, segments.partition)
            yield records.append_column("stage", pa.repeat(segments.stage, len(records)))


def _read_hashed(connection: Connection, segments: SegmentRange, transforms: Transforms) -> Iterator[pa.RecordBatch]:
    place = (segments.stage, segments.partition)
    rows = all_rows(connection, *place, after=segments.first - 1, until=segments.last)
    numbers = numbers_before(connection, *place, segments.first)
    for row, content in read_contents(connection, *place, rows, numbers, transforms):
        light = replace(row, order=replace(row.order, encoded=b""))
        columns = (
            [segments.stage],
            pa.array([segments.partition], pa.int32()),
            [row.segment],
            [row.first_position],
            [row.chain],
            [row.output_chain],
            [msgspec.msgpack.encode(HashedSegment(light, content))],
        )
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], _SEGMENT_NAMES)


_SEGMENT_NAMES = [word.split()[0] for word in SEGMENTS.split(", ")]
