"""A producer on Spark: rows stream in, the user's transform runs, records go to Kafka in serial order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.identity import Epoch, PartitionNumber, ProducerNumber, Serial, StageName, TopicName
from zerotail.core.record import digest_of
from zerotail.errors import Unavailable
from zerotail.kafka.producer import RecordSender
from zerotail.ports import Batch, Done, SendRecords
from zerotail.spark.instruction_source import InstructionSource

Transform = Callable[[bytes], bytes]


def start_producer_query(
    spark: SparkSession,
    *,
    dsn: str,
    bootstrap: str,
    producer: ProducerNumber,
    topic: TopicName,
    consumer: StageName,
    partitions: int,
    transform: Transform | None,
    checkpoint: str,
) -> StreamingQuery:
    """Send the rows of one producer as long as the query runs."""
    options = {
        "dsn": dsn,
        "producer": str(producer),
        "consumer": consumer,
        "partitions": ",".join(str(partition) for partition in range(partitions)),
    }
    rows = spark.readStream.format(InstructionSource.name()).options(**options).load()
    send = _sender_task(bootstrap, topic, producer, transform)

    def on_batch(batch: DataFrame, _number: int) -> None:
        batch.mapInArrow(send, "sent bigint").collect()

    return (
        rows.writeStream.foreachBatch(on_batch)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="50 milliseconds")
        .start()
    )


def _sender_task(
    bootstrap: str, topic: TopicName, producer: ProducerNumber, transform: Transform | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sent = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            values = batch.column("value").to_pylist()
            if transform is not None:
                values = [transform(value) for value in values]
            records = Batch(
                [producer] * len(values),
                [Serial(serial) for serial in batch.column("serial").to_pylist()],
                [Epoch(epoch) for epoch in batch.column("epoch").to_pylist()],
                [digest_of(value) for value in values],
                values,
            )
            partition = PartitionNumber(batch.column("partition")[0].as_py())
            if not isinstance(_sender(bootstrap).send(SendRecords(topic, partition, records)), Done):
                raise Unavailable(f"Kafka did not acknowledge the records of producer {producer}", code="ZT502")
            sent += len(values)
        yield pa.RecordBatch.from_pydict({"sent": pa.array([sent], pa.int64())})

    return send


@cache
def _sender(bootstrap: str) -> RecordSender:
    """One client per worker: it keeps its connections and its place in the idempotent sequence."""
    return RecordSender(bootstrap)
