"""The same pipeline on plain Spark: what the journal, the gate and the outbox are measured against.

The same rows, the same transform, the same handler, the same state in the same database, the same receiver; but no
order journal, no gate, no outbox, no recovery at another site: at least once, as pipelines are usually built. Rows go
to Kafka through Spark's own sink; a task loads and stores its keys in one transaction and posts its messages itself.
Its configuration is one like any other, with names of its own.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from threading import Event
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from zerotail.channel.http import HttpReceiver
from zerotail.config import Configuration, HttpChannel
from zerotail.core.emission import Lane
from zerotail.core.gate import Asker, Release
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    Position,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
)
from zerotail.errors import Unavailable
from zerotail.handler import Record, State, apply_in_order, decode_value, encode_value
from zerotail.ports import Accepted, LoadState, SendEmissions
from zerotail.postgres.journal import load_state, store_state
from zerotail.postgres.transaction import Session
from zerotail.running.parts import Parts, StagePart
from zerotail.running.prepare import adapter_settings, prepare
from zerotail.spark.application import open_session
from zerotail.spark.producer_query import read_instructions
from zerotail.spark.row_sender import Route

NUMBER_KEY = "last number"
_NEVER_SECONDS = 1e9
_SKIP = """
update zerotail.head set vector = coalesce((
       select jsonb_object_agg(producer.producer::text, last.serial) from zerotail.producer cross join lateral (
              select coalesce(max(serial), 0) as serial from zerotail.instruction
               where instruction.producer = producer.producer and instruction.partition = head.partition) as last
        where producer.consumer = head.stage), '{}')
 where stage = %s
"""


def run(configuration: Configuration, site: SiteName, parts: Parts, stop: Event) -> None:
    """Keep both queries running until told to stop."""
    settings = adapter_settings(configuration, site)
    (stage,) = parts.stages
    partitions = configuration.topics[stage.topic].partitions
    numbers = prepare(configuration, site).numbers
    _skip_to_end(settings.dsn, stage.name)
    spark = open_session(configuration, "plain")
    with tempfile.TemporaryDirectory(prefix="zerotail-plain-") as scratch:
        routes = [Route(part.name, part.topic, part.transform, False) for part in parts.producers]
        rows = read_instructions(
            spark,
            settings.dsn,
            site,
            routes,
            limit=configuration.spark.max_records_per_batch,
            resend_after_seconds=_NEVER_SECONDS,
            ranges=False,
        )
        transforms = {numbers[route.name]: route.transform for route in routes}
        values = rows.mapInArrow(_transformed(transforms), "partition int, value binary")
        produce = (
            values.writeStream.format("kafka")
            .options(topic=stage.topic, **settings.kafka.for_connector())
            .option("checkpointLocation", f"{scratch}/produce")
            .trigger(processingTime="50 milliseconds")
            .start()
        )
        records = (
            spark.readStream.format("kafka")
            .options(subscribe=stage.topic, startingOffsets="latest", **settings.kafka.for_connector())
            .option("maxOffsetsPerTrigger", configuration.spark.max_records_per_batch)
            .load()
            .select("partition", "value")
        )
        work = _stage_task(configuration, site, stage, settings.dsn)

        def on_batch(batch: DataFrame, _number: int) -> None:
            batch.mapInArrow(work, "applied bigint").collect()

        apply = (
            records.writeStream.foreachBatch(on_batch)
            .option("checkpointLocation", f"{scratch}/apply")
            .trigger(processingTime="0 seconds")
            .start()
        )
        sys.stderr.write(f"running the plain pipeline with {partitions} partitions\n")
        sys.stderr.flush()
        while not stop.wait(0.1):
            for query in (produce, apply):
                if not query.isActive:
                    raise RuntimeError(f"a query of the plain pipeline ended: {query.exception()}")
        for query in (produce, apply):
            query.stop()
    spark.stop()


def _skip_to_end(dsn: str, stage: StageName) -> None:
    """Begin behind the rows that are there: this pipeline remembers nothing from one start to the next."""
    session = Session(dsn)
    session.write(lambda connection: connection.execute(_SKIP.encode(), (stage,)))
    session.close()


def _transformed(
    transforms: dict[ProducerNumber, Callable[[bytes], bytes] | None],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            transform = transforms[ProducerNumber(batch.column("producer")[0].as_py())]
            values = batch.column("value")
            if transform is not None:
                values = pa.array([transform(value) for value in values.to_pylist()], pa.binary())
            yield pa.RecordBatch.from_arrays([batch.column("partition"), values], names=["partition", "value"])

    return work


def _stage_task(
    configuration: Configuration, site: SiteName, stage: StagePart, dsn: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    channel = next(iter(configuration.stages[stage.name].emits))
    settings = configuration.channels[channel]
    if not isinstance(settings, HttpChannel):
        raise TypeError("the plain pipeline posts to a receiver over HTTP")
    url, window = settings.url.reveal(), settings.batch

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = [batch for batch in batches if batch.num_rows]
        if not arrived:
            return
        table = pa.Table.from_batches(arrived)
        partition = PartitionNumber(table.column("partition")[0].as_py())
        lane = Lane(ChannelName(f"plain-{channel}"), partition)
        first, said = _apply(_session(dsn), stage, partition, table.column("value").to_pylist())
        for place in range(0, len(said), window):
            _post(_receiver(url, site), lane, first + place, said[place : place + window])
        yield pa.RecordBatch.from_pydict({"applied": pa.array([table.num_rows], pa.int64())})

    return work


def _apply(
    session: Session, stage: StagePart, partition: PartitionNumber, values: list[bytes]
) -> tuple[int, list[bytes]]:
    """Load, apply, store: one transaction; the number of the first message, and the messages."""
    records = [
        Record(ProducerNumber(1), Serial(place), Position(place), decode_value(value))
        for place, value in enumerate(values, 1)
    ]
    keys = [stage.handler.keys(record) for record in records]
    wanted = sorted({NUMBER_KEY, *(key for some in keys for key in some)})

    def transact(connection: Any) -> tuple[int, list[bytes]]:
        stored = dict(load_state(connection, LoadState(stage.name, partition, wanted)).values)
        last = decode_value(stored.pop(NUMBER_KEY, b"0"))
        state = State(stored)
        said = apply_in_order(stage.handler, records, state, keys, 0, b"", stage.at(partition).partitions_of)
        messages = next(iter(said.values()), [])
        changes = {**state.changes(), NUMBER_KEY: encode_value(last + len(messages))}
        store_state(connection, (stage.name, partition), changes)
        return last + 1, messages

    result = session.write(transact)
    if not isinstance(result, tuple):
        raise Unavailable("the database did not answer", code="ZT301")
    return result


def _post(receiver: HttpReceiver, lane: Lane, first: int, values: list[bytes]) -> None:
    release = Release(Asker(0, Timeline(0), Epoch(1)), Lsn(0), None)
    effect = SendEmissions(lane, Epoch(1), Incarnation(1), EmissionNumber(first), values, EmissionNumber(0), release)
    if not isinstance(receiver.send(effect), Accepted):
        raise Unavailable("the receiver did not accept a batch", code="ZT605")


@cache
def _session(dsn: str) -> Session:
    return Session(dsn, "plain pipeline")


@cache
def _receiver(url: str, site: SiteName) -> HttpReceiver:
    return HttpReceiver(url, site)
