"""Producers on Spark: rows come in as Arrow, the user's transforms run, records go to Kafka in serial order.

One query serves all producers of an application: a task reads and sends one producer's rows of one partition, so two
producers send to the same partition at the same time, each in its own order. The stream itself carries ranges of
serials; the rows go from the database to the task that sends them, and not through the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName, StageName, TopicName
from zerotail.core.record import digest_of
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.producer import RecordSender
from zerotail.ports import Batch, Done, SendRecords
from zerotail.postgres.feed_arrow import open_connection, read_rows
from zerotail.spark.instruction_source import NOBODY, InstructionSource
from zerotail.spark.worker import settle_worker

Transform = Callable[[bytes], bytes]
Note = Callable[[ProducerNumber, PartitionNumber, int], None]


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
    """Send rows as long as the query runs; `note` hears how many of each producer and partition were acknowledged."""
    send = _sender_task(dsn, cluster, dict(routes))

    def on_batch(batch: DataFrame, _number: int) -> None:
        for row in batch.mapInArrow(send, "producer int, partition int, sent bigint").collect():
            if row.producer != NOBODY:
                note(ProducerNumber(row.producer), PartitionNumber(row.partition), row.sent)

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
            sent = 0
            for rows in read_rows(dsn, producer, partition, wanted["first"], wanted["next_serial"]):
                route = routes[producer]
                records = _records_of(rows, producer, route.transform)
                sender = _sender(cluster)
                if not isinstance(sender.send(SendRecords(route.topic, partition, records)), Done):
                    what = f"Kafka did not acknowledge the records of {route.name}: {sender.reason}"
                    raise Unavailable(what, code="ZT502")
                sent += rows.num_rows
            yield pa.RecordBatch.from_pydict(
                {
                    "producer": pa.array([producer], pa.int32()),
                    "partition": pa.array([partition], pa.int32()),
                    "sent": pa.array([sent], pa.int64()),
                }
            )

    return send


def open_worker(dsn: str, cluster: Cluster) -> None:
    """Connect this worker to where a producer reads and writes, before it counts."""
    open_connection(dsn)
    _sender(cluster).open()


def _records_of(batch: pa.RecordBatch, producer: ProducerNumber, transform: Transform | None) -> Batch:
    values = batch.column("value").to_pylist()
    if transform is not None:
        values = [transform(value) for value in values]
    return Batch(
        [producer] * len(values),
        batch.column("serial").to_pylist(),
        batch.column("epoch").to_pylist(),
        [digest_of(value) for value in values],
        values,
    )


@cache
def _sender(cluster: Cluster) -> RecordSender:
    """One client per worker: it keeps its connections and its place in the idempotent sequence."""
    return RecordSender(cluster)
