"""Producers on Spark: rows come in as Arrow, the user's transforms run, records go to Kafka in serial order.

One query serves all producers of an application: a task reads and sends one producer's rows of one partition, so two
producers send to the same partition at the same time, each in its own order. The stream itself carries ranges of
serials; the rows go from the database to the task that sends them, and not through the JVM.

A row that the transform or Kafka cannot take stops its producer in its partition, and no other: the rows in front of it
are sent, and it is listed as poison at the door (`postgres/poison.py`). Nothing is planned behind it until somebody has
decided. Then its record goes out without a value, under the digest of the row, and the stage carries the decision out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, SiteName, StageName, TopicName
from zerotail.core.record import digest_of
from zerotail.errors import Unavailable
from zerotail.handler import describe
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.producer import RecordSender
from zerotail.ports import Batch, Done, SendRecords, TooLarge
from zerotail.postgres.feed_arrow import open_connection, read_rows
from zerotail.postgres.poison import Unfit, is_decided_at_the_door, record_at_the_door
from zerotail.postgres.transaction import Session
from zerotail.spark.instruction_source import NOBODY, InstructionSource
from zerotail.spark.worker import settle_worker

Transform = Callable[[bytes], bytes]
Note = Callable[[ProducerNumber, PartitionNumber, int, str], None]
_SENT = "producer int, partition int, sent bigint, stopped string"
_PATIENCE_SECONDS = 5.0
_HOLLOW = b""
"""In place of a value that could not be made; no handler can be given it."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where the records of one producer go, and what becomes of its rows before."""

    name: str
    topic: TopicName
    transform: Transform | None
    numbered: bool


def read_instructions(
    spark: SparkSession,
    dsn: str,
    site: SiteName,
    routes: Iterable[Route],
    *,
    limit: int = 50_000,
    resend_after_seconds: float = 5.0,
    owed: Mapping[StageName, int] | None = None,
    ranges: bool = True,
    standby: bool = False,
) -> DataFrame:
    """The rows of producers as a stream, or the ranges of their serials; `owed` is what stages may owe the outside."""
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
    ranges: DataFrame, dsn: str, cluster: Cluster, routes: Mapping[ProducerNumber, Route], checkpoint: str, note: Note
) -> StreamingQuery:
    """Send rows as long as the query runs; `note` hears how many of each producer and partition were acknowledged, and
    at which row it has stopped, if it has.
    """
    send = _sender_task(dsn, cluster, dict(routes))

    def on_batch(batch: DataFrame, _number: int) -> None:
        for row in batch.mapInArrow(send, _SENT).collect():
            if row.producer != NOBODY:
                note(ProducerNumber(row.producer), PartitionNumber(row.partition), row.sent, row.stopped)

    writer = ranges.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="50 milliseconds").start()


def _sender_task(
    dsn: str, cluster: Cluster, routes: Mapping[ProducerNumber, Route]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for wanted in (row for batch in batches for row in batch.to_pylist()):
            producer, partition = ProducerNumber(wanted["producer"]), PartitionNumber(wanted["partition"])
            if producer == NOBODY:
                open_worker(dsn, cluster)
            sent, unfit = 0, None
            for rows in read_rows(dsn, producer, partition, wanted["first"], wanted["next_serial"]):
                task = _Task(dsn, cluster, routes[producer], producer, partition, wanted["mark"])
                some, unfit = _send_rows(task, rows, decided=wanted["decided"])
                sent += some
                if unfit is not None:
                    break
            if unfit is not None:
                _stop_at(dsn, unfit)
            yield pa.RecordBatch.from_pydict(
                {
                    "producer": pa.array([producer], pa.int32()),
                    "partition": pa.array([partition], pa.int32()),
                    "sent": pa.array([sent], pa.int64()),
                    "stopped": pa.array([f"serial {unfit.serial}: {unfit.reason}" if unfit else ""]),
                }
            )

    return send


def open_worker(dsn: str, cluster: Cluster) -> None:
    """Connect this worker to where a producer reads and writes, before it counts."""
    open_connection(dsn)
    _sender(cluster).open()


@dataclass(frozen=True, slots=True)
class _Task:
    """Whose rows are sent, and how."""

    dsn: str
    cluster: Cluster
    route: Route
    producer: ProducerNumber
    partition: PartitionNumber
    mark: int
    """Of which installation the records are."""

    def unfit(self, serial: int, row: bytes, reason: str) -> Unfit:
        return Unfit(self.producer, self.partition, Serial(serial), digest_of(row), reason)


def _send_rows(task: _Task, rows: pa.RecordBatch, *, decided: bool) -> tuple[int, Unfit | None]:
    """How many of these rows were sent, and the one behind them of which no record can be made, if there is one."""
    values, serials = rows.column("value").to_pylist(), rows.column("serial").to_pylist()
    records, unfit = _made(task, values, serials, decided=decided)
    epochs, digests = rows.column("epoch").to_pylist(), [digest_of(value) for value in records]
    if decided and records == [_HOLLOW]:
        digests = [digest_of(values[0])]
    count = len(records)
    if not count:
        return 0, unfit
    batch = Batch([task.producer] * count, serials[:count], epochs[:count], digests, records, task.mark)
    answer = _sender(task.cluster).send(SendRecords(task.route.topic, task.partition, batch))
    if isinstance(answer, TooLarge):
        place = answer.place
        reason = f"Kafka does not take {len(records[place])} bytes: {answer.reason}"
        return place, task.unfit(serials[place], values[place], reason)
    if not isinstance(answer, Done):
        what = f"Kafka did not acknowledge the records of {task.route.name}: {_sender(task.cluster).reason}"
        raise Unavailable(what, code="ZT502")
    return count, unfit


def _made(task: _Task, values: list[bytes], serials: list[int], *, decided: bool) -> tuple[list[bytes], Unfit | None]:
    """The values of records, and the first row of which none can be made."""
    transform = task.route.transform
    if decided and _is_decided(task, serials[0], values[0]):
        return [_HOLLOW], None
    if transform is None:
        return values, None
    made: list[bytes] = []
    try:
        for value in values:
            made.append(_bytes_of(transform(value)))  # noqa: PERF401 - those in front of the one that fails are sent
    except Exception as error:  # noqa: BLE001 - whatever somebody's code raises
        place = len(made)
        return made, task.unfit(serials[place], values[place], f"the transform cannot take it: {describe(error)}")
    return made, None


def _bytes_of(value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"it gave {type(value).__name__}, not bytes")
    return bytes(value)


def _is_decided(task: _Task, serial: int, row: bytes) -> bool:
    with closing(Session(task.dsn, "zerotail producer", patience_seconds=_PATIENCE_SECONDS)) as session:
        found = session.read(
            lambda c: is_decided_at_the_door(c, task.producer, task.partition, Serial(serial), digest_of(row))
        )
    if not isinstance(found, bool):
        raise Unavailable("the database does not answer", code="ZT301")
    return found


def _stop_at(dsn: str, unfit: Unfit) -> None:
    with closing(Session(dsn, "zerotail producer", patience_seconds=_PATIENCE_SECONDS)) as session:
        stored = session.write(lambda connection: record_at_the_door(connection, unfit))
    if not isinstance(stored, Done):
        raise Unavailable("the database does not answer", code="ZT301")


@cache
def _sender(cluster: Cluster) -> RecordSender:
    """One client per worker: it keeps its connections and its place in the idempotent sequence."""
    return RecordSender(cluster)
