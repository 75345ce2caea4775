"""Restoring order through Spark: a disordered topic as a DataFrame in journal order, all partitions at once.

    frame = records_in_order(spark, places)        # one task per partition, in order inside
    frame = records_sorted(spark, places)          # many tasks per partition, in order throughout

Both have the columns `partition`, `position`, `producer`, `serial`, `value`. A task reads its partition's journal from
the database itself, computes each record's position from it, and proves every segment before its records leave. The
first keeps Kafka's own cut, so that nothing is shuffled: the merge happens while the partition streams through. The
second sorts by position, in ranges that hold whole segments.

1. What a task hands on has come to the recorded chain; with `check_values` each value was hashed as well.
2. A record that is missing ends the job by its name. When sorting, a row of its own stands at the head of each range,
   so that a range is missed even if the topic has nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from zerotail.core.identity import PartitionNumber, Position
from zerotail.core.merge import missing_record
from zerotail.core.order import BEYOND
from zerotail.core.record import HEADER_NAME
from zerotail.core.restoration import Batch, unbounded
from zerotail.core.restoration.proof import VALUE_NAME, Proof
from zerotail.errors import Refused
from zerotail.kafka.log import MissingTopicError
from zerotail.restore.place import Place, Recorded, read_recorded
from zerotail.restore.reading import HeldBack, InOrder
from zerotail.spark.task_errors import telling_errors
from zerotail.spark.worker import settle_worker

Places = Mapping[PartitionNumber, Place]
COLUMNS = "partition int, position long, producer int, serial long, value binary"
_PLACED = f"partition int, range long, position long, {HEADER_NAME} binary, value binary"
_HEADER = (
    f"case when size(headers) = 1 and headers[0].key = '{HEADER_NAME}' then headers[0].value "
    f"else get(filter(headers, header -> header.key = '{HEADER_NAME}'), 0).value end as {HEADER_NAME}"
)
_SEGMENTS_PER_RANGE = 64
_HEAD_OF_RANGE = -1
"""In the place of a position."""


def read_topic(spark: SparkSession, places: Sequence[Place], topic: str) -> DataFrame:
    """The records of a topic as they lie: `partition`, `zt`, `offset`, `value`; one task per partition."""
    options = {
        "assign": msgspec.json.encode({topic: [place.partition for place in places]}).decode(),
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        **places[0].cluster.for_connector(),
    }
    records = spark.read.format("kafka").options(**options).load()
    return records.select("partition", expr(_HEADER), "offset", "value")


def records_in_order(spark: SparkSession, places: Sequence[Place], *, check_values: bool = False) -> DataFrame:
    """A topic in journal order; inside each partition the rows come in the order of their positions."""
    recorded = _require_records(places)
    records = read_topic(spark, places, recorded[0].topic)
    known = _by_partition(places)
    return records.mapInArrow(lambda batches: telling_errors(_ordered(known, batches, check_values)), COLUMNS)


def records_sorted(
    spark: SparkSession, places: Sequence[Place], tasks: int | None = None, *, check_values: bool = False
) -> DataFrame:
    """The same, sorted: the rows come in the order of partition and position, over all tasks.

    Without `tasks` there are as many as Spark has cores (`spark.default.parallelism`).
    """
    recorded = _require_records(places)
    records = read_topic(spark, places, recorded[0].topic)
    known = _by_partition(places)
    placed = records.mapInArrow(lambda batches: telling_errors(_placed(known, batches)), _PLACED)
    heads = [
        (place.partition, number, _HEAD_OF_RANGE, None, None)
        for place, one in zip(places, recorded, strict=True)
        for number in range(1, len(_range_starts(one)) + 1)
    ]
    every = placed.union(spark.createDataFrame(heads, _PLACED))
    ordered = every.repartitionByRange(tasks or spark.sparkContext.defaultParallelism, "partition", "range")
    ordered = ordered.sortWithinPartitions("partition", "range", "position")
    return ordered.mapInArrow(lambda batches: telling_errors(_proven(known, batches, check_values)), COLUMNS)


def _require_records(places: Sequence[Place]) -> list[Recorded]:
    """What is recorded about the places; a log that is empty though its journal is not gives no task that could say
    so.
    """
    found = []
    for place in places:
        recorded = read_recorded(place)
        if len(recorded.journal.order) and not _holds_any(recorded, place):
            raise Refused(
                f"partition {place.partition} of topic {recorded.topic} is empty, and "
                f"{len(recorded.journal.order):,} records of it are journaled",
                code="ZT487",
                tries=[f"zerotail restore run --topic {place.topic} --strategy ordered-refill"],
            )
        found.append(recorded)
    return found


def _holds_any(recorded: Recorded, place: Place) -> bool:
    """Whether a log has a record of ours; marks of transactions are none."""
    try:
        return any(len(batch) for batch in recorded.log(place).open(None))
    except MissingTopicError:
        return False


def _by_partition(places: Sequence[Place]) -> dict[PartitionNumber, Place]:
    return {place.partition: place for place in places}


def _filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _ordered(places: Places, batches: Iterable[pa.RecordBatch], check_values: bool) -> Iterator[pa.RecordBatch]:
    """The task of one partition: its records, in order."""
    settle_worker()
    arriving = _filled(batches)
    first = next(arriving, None)
    if first is None:
        return
    place = places[PartitionNumber(first.column("partition")[0].as_py())]
    recorded = read_recorded(place)
    payloads = (batch.drop_columns(["partition"]) for batch in chain([first], arriving))
    restored = unbounded(
        recorded.journal.order, (Batch.within(payload, recorded.limits, recorded.installation) for payload in payloads)
    )
    position = recorded.journal.order.first_position
    for batch in InOrder(restored, Proof(recorded.journal, values=check_values)):
        yield _rows(recorded, place.partition, position, batch.column(VALUE_NAME))
        position = Position(position + batch.num_rows)


def _rows(recorded: Recorded, partition: PartitionNumber, position: Position, values: pa.Array) -> pa.RecordBatch:
    count = len(values)
    producers, serials = recorded.journal.order.records_between(position, position + count)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(count, partition, dtype=np.int32)),
            pa.array(np.arange(position, position + count)),
            pa.array(producers.astype(np.int32)),
            pa.array(serials),
            values,
        ],
        names=["partition", "position", "producer", "serial", "value"],
    )


def _range_starts(recorded: Recorded) -> np.ndarray:
    """The first position of each range; the first range has number 1."""
    starts = [row.first_position for row in recorded.journal.segments[::_SEGMENTS_PER_RANGE]]
    return np.array(starts, dtype=np.int64)


def _placed(places: Places, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each record with its position and the range of whole segments that it falls into; what has none is left out."""
    settle_worker()
    known: dict[PartitionNumber, tuple[Recorded, Any]] = {}
    for arrived in _filled(batches):
        partition = PartitionNumber(arrived.column("partition")[0].as_py())
        if partition not in known:
            recorded = read_recorded(places[partition])
            known[partition] = (recorded, _range_starts(recorded))
        recorded, ranges = known[partition]
        batch = Batch.within(arrived.drop_columns(["partition"]), recorded.limits, recorded.installation)
        positions = recorded.journal.order.positions(batch.producers, batch.serials)
        inside = (positions >= 0) & (positions != BEYOND)
        payload, positions = batch.payload.filter(pa.array(inside)), positions[inside]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.full(len(positions), partition, dtype=np.int32)),
                pa.array(np.searchsorted(ranges, positions, side="right").astype(np.int64)),
                pa.array(positions),
                payload.column(HEADER_NAME),
                payload.column(VALUE_NAME),
            ],
            names=["partition", "range", "position", HEADER_NAME, VALUE_NAME],
        )


@dataclass(frozen=True, slots=True)
class _Range:
    """One range on its way through a task."""

    partition: PartitionNumber
    number: int
    recorded: Recorded
    proof: Proof
    held: HeldBack
    next_position: Position
    """Where it ends."""

    def take(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Its next rows, sorted; each record leaves once, when its segment is proven."""
        positions = rows.column("position").to_numpy()
        news = np.diff(positions, prepend=self.proof.position - 1) > 0
        if not news.any():
            return
        rows, positions = rows.filter(pa.array(news)), positions[news]
        expected = np.arange(self.proof.position, self.proof.position + len(positions))
        wrong = np.flatnonzero(positions != expected)
        if len(wrong):
            raise missing_record(self.recorded.journal.order, Position(int(expected[wrong[0]])))
        self.proof.check(rows)
        self.held.put(rows)
        for ready in self.held.release(self.proof.proven_position):
            position = Position(self.held.position - ready.num_rows)
            yield _rows(self.recorded, self.partition, position, ready.column(VALUE_NAME))

    def require_complete(self) -> None:
        """`Refused` when its last records are missing."""
        if self.proof.position != self.next_position:
            raise missing_record(self.recorded.journal.order, self.proof.position)


def _open_range(recorded: Recorded, partition: PartitionNumber, number: int, check_values: bool) -> _Range:
    segments = recorded.journal.segments
    first, end = (number - 1) * _SEGMENTS_PER_RANGE, min(number * _SEGMENTS_PER_RANGE, len(segments))
    proof = Proof(recorded.journal, first + 1, values=check_values)
    return _Range(partition, number, recorded, proof, HeldBack(proof.position), segments[end - 1].next_position)


def _proven(places: Places, batches: Iterable[pa.RecordBatch], check_values: bool) -> Iterator[pa.RecordBatch]:
    """Sorted records, each once; a task holds whole ranges, and proves them while they pass."""
    settle_worker()
    known: dict[PartitionNumber, Recorded] = {}
    current: _Range | None = None
    for batch in _filled(batches):
        for rows in _by_range(batch):
            partition, number = PartitionNumber(rows.column("partition")[0].as_py()), rows.column("range")[0].as_py()
            if current is None or (current.partition, current.number) != (partition, number):
                if current is not None:
                    current.require_complete()
                if partition not in known:
                    known[partition] = read_recorded(places[partition])
                current = _open_range(known[partition], partition, number, check_values)
            yield from current.take(rows)
    if current is not None:
        current.require_complete()


def _by_range(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of each range, which stand together."""
    partitions, ranges = batch.column("partition").to_numpy(), batch.column("range").to_numpy()
    changes = np.flatnonzero((np.diff(partitions) != 0) | (np.diff(ranges) != 0)) + 1
    for begin, end in pairwise([0, *changes.tolist(), batch.num_rows]):
        yield batch.slice(begin, end - begin)
