"""Producers on Spark: rows come in as Arrow, the user's transforms run, records go to Kafka in serial order.

One query serves all producers of an application: a task reads and sends one producer's rows of one partition, so two
producers send to the same partition at the same time, each in its own order. The stream itself carries ranges of
serials; the rows go from the database to the task that sends them, and not through the JVM.

A row that the transform or Kafka cannot take stops its producer in its partition, and no other: the rows in front of it
are sent, and it is listed as poison at the door (`postgres/poison.py`). Nothing is planned behind it until somebody has
decided. Then its record goes out without a value, under the digest of the row, and the stage carries the decision out.
One at which the transform is for long, or of which a worker dies, is tried in a process of its own (`door.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.identity import ChannelName, PartitionNumber, ProducerNumber, SiteName, StageName
from zerotail.kafka.cluster import Cluster
from zerotail.postgres.feed_arrow import open_connection, read_rows
from zerotail.spark.door import Door
from zerotail.spark.door_worker import Errand
from zerotail.spark.instruction_source import NOBODY, InstructionSource
from zerotail.spark.row_sender import Route, Rows, Sent, send_rows, sender_to, stop_at
from zerotail.spark.task_errors import WORKER_DIED
from zerotail.spark.worker import settle_worker

_SENT = "producer int, partition int, sent bigint, stopped string, slow bigint, mark bigint"
_TASK = re.compile(r"Task (\d+) in stage")
_OTHERS_WAIT_SECONDS = 0.5
"""So long other producers wait for a transform that is at one row."""


def read_instructions(
    spark: SparkSession,
    dsn: str,
    site: SiteName,
    routes: Iterable[Route],
    *,
    limit: int = 50_000,
    resend_after_seconds: float = 5.0,
    owed: Mapping[StageName, tuple[int, Sequence[ChannelName]]] | None = None,
    ranges: bool = True,
    standby: bool = False,
) -> DataFrame:
    """The rows of producers as a stream, or the ranges of their serials; `owed` is what stages may owe the outside, and
    which channels do not count, since they lead back to the stage.
    """
    known = list(routes)
    options = {
        "dsn": dsn,
        "site": site,
        "producers": ",".join(route.name for route in known),
        "numbered": ",".join(route.name for route in known if route.numbered),
        "limit": str(limit),
        "resend_after_seconds": str(resend_after_seconds),
        "owed": json.dumps(owed or {}),
        "ranges": str(ranges),
        "standby": str(standby),
    }
    return spark.readStream.format(InstructionSource.name()).options(**options).load()


def start_producer_query(
    ranges: DataFrame, dsn: str, cluster: Cluster, routes: Mapping[ProducerNumber, Route], checkpoint: str, door: Door
) -> StreamingQuery:
    """Send rows as long as the query runs; the door hears how many of each producer and partition were acknowledged,
    and at which row it has stopped, if it has.
    """
    known = dict(routes)
    send = _sender_task(dsn, cluster, known)

    def errand(wanted: Row, first: int, next_serial: int) -> Errand:
        producer = ProducerNumber(wanted.producer)
        place = producer, PartitionNumber(wanted.partition)
        return Errand(Rows(dsn, cluster, known[producer], *place, wanted.mark), first, next_serial)

    def on_batch(batch: DataFrame, _number: int) -> None:
        for row in _carry_out(batch, send, door, errand):
            if row.producer == NOBODY:
                continue
            door.note(ProducerNumber(row.producer), PartitionNumber(row.partition), row.sent, row.stopped)
            if row.slow:
                door.send(errand(row, row.slow, row.slow + 1), f"its transform is at serial {row.slow} for long")

    writer = ranges.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="50 milliseconds").start()


Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _carry_out(batch: DataFrame, send: Work, door: Door, errand: Callable[[Row, int, int], Errand]) -> list[Row]:
    """The results of a batch's tasks, but for those of which a worker dies: Spark gives up the whole batch for one.

    What the others have sent is sent again then, and dropped.
    """
    wanted = batch
    for producer, partition in door.places():
        wanted = _without(wanted, producer, partition)
    while True:
        try:
            return wanted.mapInArrow(send, _SENT).collect()
        except Exception as error:
            if WORKER_DIED not in str(error):
                raise
            died = _find_range(batch, str(error))
            if died is None:
                raise
            door.send(errand(died, died.first, died.next_serial), "a worker died of a row of its own")
            wanted = _without(wanted, died.producer, died.partition)


def _without(ranges: DataFrame, producer: int, partition: int) -> DataFrame:
    return ranges.where(f"producer <> {producer} or partition <> {partition}")


def _find_range(batch: DataFrame, told: str) -> Row | None:
    """Which range the task had that Spark names in an error: each range is a task of its own, in their order.

    None where nothing is to be tried again: its row was decided about, or it has none.
    """
    found = _TASK.search(told)
    rows = batch.collect()
    if found is None or int(found[1]) >= len(rows):
        return None
    row = rows[int(found[1])]
    return None if row.decided or row.producer == NOBODY else row


def _sender_task(dsn: str, cluster: Cluster, routes: Mapping[ProducerNumber, Route]) -> Work:
    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for wanted in (row for batch in batches for row in batch.to_pylist()):
            producer, partition = ProducerNumber(wanted["producer"]), PartitionNumber(wanted["partition"])
            if producer == NOBODY:
                open_worker(dsn, cluster)
                sent = Sent(0)
            else:
                rows = Rows(dsn, cluster, routes[producer], producer, partition, wanted["mark"])
                sent = _send_range(rows, wanted["first"], wanted["next_serial"], decided=wanted["decided"])
            unfit = sent.unfit
            if unfit is not None:
                stop_at(dsn, unfit)
            yield pa.RecordBatch.from_pydict(
                {
                    "producer": pa.array([producer], pa.int32()),
                    "partition": pa.array([partition], pa.int32()),
                    "sent": pa.array([sent.count], pa.int64()),
                    "stopped": pa.array([f"serial {unfit.serial}: {unfit.reason}" if unfit else ""]),
                    "slow": pa.array([sent.slow or 0], pa.int64()),
                    "mark": pa.array([wanted["mark"]], pa.int64()),
                }
            )

    return send


def _send_range(task: Rows, first: int, next_serial: int, *, decided: bool) -> Sent:
    count = 0
    seconds = min(_OTHERS_WAIT_SECONDS, task.route.transform_seconds)
    for rows in read_rows(task.dsn, task.producer, task.partition, first, next_serial):
        sent = send_rows(task, rows, decided=decided, seconds=seconds)
        count += sent.count
        if sent.unfit is not None or sent.slow is not None:
            return replace(sent, count=count)
    return Sent(count)


def open_worker(dsn: str, cluster: Cluster) -> None:
    """Connect this worker to where a producer reads and writes, before it counts."""
    open_connection(dsn)
    sender_to(cluster).open()
