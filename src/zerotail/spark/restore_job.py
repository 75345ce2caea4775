"""A restore carried out by Spark: partitions side by side.

`unbounded` and `sort` read the topic through the connector and give a DataFrame in journal order (`restoring.py`); its
rows are counted here, or go through the handler. Every other strategy is the restore of one machine, as a task for each
partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber
from zerotail.core.record import digests_of
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.errors import Misused, Refused
from zerotail.kafka.log import admin_client, ensure_topic
from zerotail.restore.place import Place, read_recorded
from zerotail.restore.plan import Wish, require_usable
from zerotail.restore.rebuild import Rebuild
from zerotail.restore.refill import refill
from zerotail.restore.report import Outcome, PartitionReport
from zerotail.restore.run import run_restore
from zerotail.restore.seen import Seen, plan_restore
from zerotail.spark.restoring import records_in_order, records_sorted
from zerotail.spark.session import session_for_a_look
from zerotail.spark.task_errors import errors_of_tasks, telling_errors

Rebuilds = Mapping[PartitionNumber, Rebuild]
MakeRebuild = Callable[[Seen], Rebuild]
_THROUGH = (RestoreStrategy.UNBOUNDED, RestoreStrategy.SORT)
_ROWS_AT_ONCE = 10_000


def restore_with_spark(
    configuration: Configuration,
    places: Sequence[Place],
    wish: Wish,
    tell: Callable[[str], None],
    *,
    check_values: bool = True,
    make_rebuild: MakeRebuild | None = None,
) -> tuple[PartitionReport, ...]:
    """Carry out a restore of several partitions at once; with `make_rebuild` through the handler as well."""
    seen = [plan_restore(place, wish) for place in places]
    for one in seen:
        require_usable(one.plan)
        tell(f"partition {one.place.partition}: {one.plan.chosen}, {one.plan.reason}")
    connected = [one for one in seen if one.plan.chosen in _THROUGH]
    others = [one for one in seen if one.plan.chosen not in _THROUGH]
    if connected and wish.into is not None:
        raise Misused(
            "through Spark, unbounded and sort give a DataFrame; --into goes with ordered-refill there.", code="ZT146"
        )
    if others and make_rebuild is not None:
        raise Misused(
            f"through Spark, {others[0].plan.chosen} does not bring the records here; --rebuild-state needs them.",
            code="ZT142",
            tries=["--strategy unbounded", "--strategy sort", "--engine local"],
        )
    rebuilds = {one.place.partition: make_rebuild(one) for one in connected} if make_rebuild is not None else {}
    settings = {key: value.reveal() for key, value in configuration.spark.settings.items()}
    with session_for_a_look(configuration.spark.master, settings) as spark, errors_of_tasks():
        reports = _run_side_by_side(spark, others, wish, check_values)
        for strategy in _THROUGH:
            alike = [one for one in connected if one.plan.chosen is strategy]
            reports += _read_through(spark, alike, rebuilds, check_values)
    return tuple(sorted(reports, key=lambda report: report.plan.partition))


def _run_side_by_side(
    spark: SparkSession, seen: Sequence[Seen], wish: Wish, check_values: bool
) -> list[PartitionReport]:
    """Each partition's restore as one task."""
    if not seen:
        return []
    asked = [(one.place, replace(wish, strategy=one.plan.chosen)) for one in seen]

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in _indexes(batches):
            report = run_restore(plan_restore(*asked[index]), check_values=check_values)
            yield pa.record_batch({"report": pa.array([msgspec.json.encode(report)], pa.binary())})

    tasks = _one_task_each(spark, len(asked))
    rows = tasks.mapInArrow(lambda batches: telling_errors(work(batches)), "report binary").collect()
    return [msgspec.json.decode(bytes(row.report), type=PartitionReport) for row in rows]


def _read_through(
    spark: SparkSession, seen: Sequence[Seen], rebuilds: Rebuilds, check_values: bool
) -> list[PartitionReport]:
    """Complete the logs, read them in order through the connector; count the rows, or take them through the handler."""
    if not seen:
        return []
    began = time.perf_counter()
    places = [one.place for one in seen]
    _complete_side_by_side(spark, seen)
    make = records_sorted if seen[0].plan.chosen is RestoreStrategy.SORT else records_in_order
    frame = make(spark, places, check_values=check_values)
    counted = _rebuild(frame, rebuilds) if rebuilds else _count(frame)
    return [_report(one, counted, time.perf_counter() - began, rebuilds) for one in seen]


def _count(frame: DataFrame) -> dict[int, int]:
    return {row["partition"]: row["count"] for row in frame.groupBy("partition").count().collect()}


def _rebuild(frame: DataFrame, rebuilds: Rebuilds) -> dict[int, int]:
    """Take every row through its partition's handler, here: tasks deliver one after the other."""
    counted = dict.fromkeys(rebuilds, 0)
    waiting: dict[PartitionNumber, list[bytes]] = {partition: [] for partition in rebuilds}

    def pass_on(partition: PartitionNumber) -> None:
        values = waiting[partition]
        rebuilds[partition].take(values, digests_of(values))
        counted[partition] += len(values)
        values.clear()

    for row in frame.select("partition", "value").toLocalIterator(prefetchPartitions=True):
        partition = PartitionNumber(row.partition)
        waiting[partition].append(bytes(row.value))
        if len(waiting[partition]) == _ROWS_AT_ONCE:
            pass_on(partition)
    for partition in rebuilds:
        pass_on(partition)
    return {int(partition): count for partition, count in counted.items()}


def _report(one: Seen, counted: Mapping[int, int], seconds: float, rebuilds: Rebuilds) -> PartitionReport:
    journal, found = one.recorded.journal, counted.get(one.place.partition, 0)
    if found != len(journal.order):
        raise Refused(
            f"of partition {one.place.partition} of topic {one.recorded.topic} {found:,} records came out in order, "
            f"and {len(journal.order):,} are journaled",
            code="ZT488",
            tries=[f"zerotail restore plan --topic {one.place.topic}"],
        )
    rebuild = rebuilds.get(one.place.partition)
    return PartitionReport(
        plan=one.plan,
        strategy=one.plan.chosen,
        outcome=Outcome(seconds, 0, 1.0, one.state.missing, None),
        records=found,
        segments=len(journal.segments),
        chain=journal.chain.hex(),
        state_digest=rebuild.require_stored_state(one.place.dsn) if rebuild is not None else "",
        written_to="",
        live_offset=None,
    )


def _complete_side_by_side(spark: SparkSession, seen: Sequence[Seen]) -> None:
    lacking = [one.place for one in seen if one.state.missing]
    if not lacking:
        return

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in _indexes(batches):
            place = lacking[index]
            recorded = read_recorded(place)
            ensure_topic(admin_client(place.cluster), recorded.topic, place.shape)
            yield pa.record_batch({"written": [refill(place, recorded, recorded.topic)]})

    tasks = _one_task_each(spark, len(lacking))
    tasks.mapInArrow(lambda batches: telling_errors(work(batches)), "written long").collect()


def _one_task_each(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, count)


def _indexes(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column("id").to_pylist()
