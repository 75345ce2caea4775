"""Restoring order through Spark: a disordered topic as a DataFrame in journal order, all partitions at once.

    frame = records_in_order(spark, places)        # one task per partition, in order inside
    frame = records_sorted(spark, places)          # many tasks per partition, in order throughout

Both have the columns `partition`, `position`, `producer`, `serial`, `value`. A task reads its partition's journal from
the database itself, computes each record's position from it, and proves every segment before its records leave. The
first keeps Kafka's own cut, so that nothing is shuffled: the merge happens while the partition streams through. The
second sorts by position, in ranges that hold whole segments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, Position
from zerotail.core.merge import missing_record
from zerotail.core.order import BEYOND
from zerotail.core.record import HEADER_NAME
from zerotail.core.restoration import Batch, unbounded
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.core.restoration.proof import VALUE_NAME, Proof
from zerotail.errors import Misused, Refused
from zerotail.restore import InOrder, Place, Seen, Wish, plan_restore, run_restore
from zerotail.restore.place import Recorded, read_recorded
from zerotail.restore.plan import require_usable
from zerotail.restore.refill import refill
from zerotail.restore.report import Outcome, PartitionReport
from zerotail.spark.application import open_session
from zerotail.spark.worker import settle_worker

Places = Mapping[PartitionNumber, Place]
COLUMNS = "partition int, position long, producer int, serial long, value binary"
_HEADER = (
    f"case when size(headers) = 1 and headers[0].key = '{HEADER_NAME}' then headers[0].value "
    f"else get(filter(headers, header -> header.key = '{HEADER_NAME}'), 0).value end as {HEADER_NAME}"
)
_SEGMENTS_PER_RANGE = 64


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


def records_in_order(spark: SparkSession, places: Sequence[Place]) -> DataFrame:
    """A topic in journal order; inside each partition the rows come in the order of their positions."""
    recorded = _require_records(places)
    records = read_topic(spark, places, recorded[0].topic)
    known = _by_partition(places)
    return records.mapInArrow(lambda batches: _ordered(known, batches), COLUMNS)


def records_sorted(spark: SparkSession, places: Sequence[Place], tasks: int = 2) -> DataFrame:
    """The same, sorted: the rows come in the order of partition and position, over all tasks."""
    recorded = _require_records(places)
    records = read_topic(spark, places, recorded[0].topic)
    known = _by_partition(places)
    placed = records.mapInArrow(
        lambda batches: _placed(known, batches),
        f"partition int, range long, position long, {HEADER_NAME} binary, value binary",
    )
    ordered = placed.repartitionByRange(tasks, "partition", "range").sortWithinPartitions("partition", "position")
    return ordered.mapInArrow(lambda batches: _proven(known, batches), COLUMNS)


def restore_with_spark(
    configuration: Configuration, places: Sequence[Place], wish: Wish, tell: Callable[[str], None]
) -> tuple[PartitionReport, ...]:
    """Carry out a restore of several partitions at once."""
    seen = [plan_restore(place, wish) for place in places]
    for one in seen:
        require_usable(one.plan)
        tell(f"partition {one.place.partition}: {one.plan.chosen}, {one.plan.reason}")
    through = (RestoreStrategy.UNBOUNDED, RestoreStrategy.SORT)
    connected = [one for one in seen if one.plan.chosen in through]
    if connected and wish.into is not None:
        raise Misused(
            "through Spark, unbounded and sort give a DataFrame; --into goes with ordered-refill there.", code="ZT146"
        )
    spark = open_session(configuration, "restore")
    try:
        others = [one.place for one in seen if one.plan.chosen not in through]
        reports = [*_run_side_by_side(spark, others, wish), *_read_through(spark, connected)]
    finally:
        spark.stop()
    return tuple(sorted(reports, key=lambda report: report.plan.partition))


def _run_side_by_side(spark: SparkSession, places: Sequence[Place], wish: Wish) -> list[PartitionReport]:
    """Each partition's restore as one task."""
    if not places:
        return []

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                report = run_restore(plan_restore(places[index], wish))
                yield pa.record_batch({"report": pa.array([msgspec.json.encode(report)], pa.binary())})

    rows = spark.range(len(places)).repartitionByRange(len(places), "id").mapInArrow(work, "report binary").collect()
    return [msgspec.json.decode(bytes(row.report), type=PartitionReport) for row in rows]


def _read_through(spark: SparkSession, seen: Sequence[Seen]) -> list[PartitionReport]:
    """Complete the logs, read them in order through the connector, count what comes."""
    if not seen:
        return []
    began = time.perf_counter()
    places = [one.place for one in seen]
    _complete_side_by_side(spark, seen)
    sort = seen[0].plan.chosen is RestoreStrategy.SORT
    frame = records_sorted(spark, places) if sort else records_in_order(spark, places)
    counted = {row["partition"]: row["count"] for row in frame.groupBy("partition").count().collect()}
    seconds = time.perf_counter() - began
    reports = []
    for one in seen:
        journal, found = one.recorded.journal, counted.get(one.place.partition, 0)
        if found != len(journal.order):
            raise missing_record(journal.order, Position(found))
        outcome = Outcome(seconds, 0, 1.0, one.state.missing, None)
        reports.append(
            PartitionReport(
                plan=one.plan,
                strategy=one.plan.chosen,
                outcome=outcome,
                records=found,
                segments=len(journal.segments),
                chain=journal.chain.hex(),
                state_digest="",
                written_to="",
                live_offset=None,
            )
        )
    return reports


def _complete_side_by_side(spark: SparkSession, seen: Sequence[Seen]) -> None:
    lacking = [(one.place, dict(one.state.last)) for one in seen if one.state.missing]
    if not lacking:
        return

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                place, last = lacking[index]
                recorded = read_recorded(place)
                yield pa.record_batch({"written": [refill(place, recorded, recorded.topic, last)]})

    spark.range(len(lacking)).repartitionByRange(len(lacking), "id").mapInArrow(work, "written long").collect()


def _require_records(places: Sequence[Place]) -> list[Recorded]:
    """What is recorded about the places; a log that is empty though its journal is not gives no task that could say
    so.
    """
    found = []
    for place in places:
        recorded = read_recorded(place)
        if len(recorded.journal.order) and not recorded.log(place).records:
            raise Refused(
                f"partition {place.partition} of topic {recorded.topic} is empty, and "
                f"{len(recorded.journal.order):,} records of it are journaled",
                code="ZT487",
                tries=[f"zerotail restore run --topic {place.topic} --strategy ordered-refill"],
            )
        found.append(recorded)
    return found


def _by_partition(places: Sequence[Place]) -> dict[PartitionNumber, Place]:
    return {place.partition: place for place in places}


def _filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _ordered(places: Places, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task of one partition: its records, in order."""
    settle_worker()
    arriving = _filled(batches)
    first = next(arriving, None)
    if first is None:
        return
    place = places[PartitionNumber(first.column("partition")[0].as_py())]
    recorded = read_recorded(place)
    payloads = (batch.drop_columns(["partition"]) for batch in chain([first], arriving))
    restored = unbounded(recorded.journal.order, (Batch.within(payload, recorded.limits) for payload in payloads))
    position = recorded.journal.order.first_position
    for batch in InOrder(restored, Proof(recorded.journal)):
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


def _placed(places: Places, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each record with its position and the range of whole segments that it falls into; what has none is left out."""
    settle_worker()
    known: dict[PartitionNumber, tuple[Recorded, Any]] = {}
    for arrived in _filled(batches):
        partition = PartitionNumber(arrived.column("partition")[0].as_py())
        if partition not in known:
            recorded = read_recorded(places[partition])
            starts = np.array([row.first_position for row in recorded.journal.segments], dtype=np.int64)
            known[partition] = (recorded, starts[::_SEGMENTS_PER_RANGE])
        recorded, ranges = known[partition]
        batch = Batch.within(arrived.drop_columns(["partition"]), recorded.limits)
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


def _proven(places: Places, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sorted records, each once; a task holds whole segments, and proves them while they pass."""
    settle_worker()
    open_proof: tuple[PartitionNumber, Recorded, Proof] | None = None
    for batch in _filled(batches):
        partitions = batch.column("partition").to_numpy()
        for begin, end in _groups(partitions):
            partition = PartitionNumber(int(partitions[begin]))
            some = batch.slice(begin, end - begin)
            positions = some.column("position").to_numpy()
            if open_proof is None or open_proof[0] != partition:
                _require_closed(open_proof)
                recorded = read_recorded(places[partition])
                segment = recorded.journal.segment_at(Position(int(positions[0])))
                open_proof = (partition, recorded, Proof(recorded.journal, segment.segment))
            _, recorded, proof = open_proof
            news = np.diff(positions, prepend=proof.position - 1) > 0
            some = some if news.all() else some.filter(pa.array(news))
            if some.num_rows:
                _require_next(recorded, proof, positions[news])
                position = proof.position
                proof.check(some)
                yield _rows(recorded, partition, position, some.column(VALUE_NAME))
    _require_closed(open_proof)


def _groups(partitions: np.ndarray) -> Iterator[tuple[int, int]]:
    """The rows of each partition, which stand together."""
    borders = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    return pairwise(borders)


def _require_next(recorded: Recorded, proof: Proof, positions: np.ndarray) -> None:
    expected = np.arange(proof.position, proof.position + len(positions))
    wrong = np.flatnonzero(positions != expected)
    if len(wrong):
        raise missing_record(recorded.journal.order, Position(int(expected[wrong[0]])))


def _require_closed(open_proof: tuple[PartitionNumber, Recorded, Proof] | None) -> None:
    """`Refused` when the last segment is not complete."""
    if open_proof is not None and open_proof[2].proven_position != open_proof[2].position:
        raise missing_record(open_proof[1].journal.order, open_proof[2].position)
