"""A stage on Spark: one streaming query, one task and one database transaction per Kafka partition and batch.

The driver keeps the places; each batch hands a task the head it must find, and gets back the head behind it. So an
older driver is told by the compare-and-set that another one has gone on, and ends. A task that runs twice, because it
is tried again or runs speculatively, finds its own batch in the head and goes on from there.

A partition that others must not wait for is left out of the batches: a task gives up at a record at which the handler
is for too long, and where a worker dies, each partition is tried by itself (`alone.py`).

Where to read is in the heads. Spark's own checkpoint begins empty at every start and is thrown away at the end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.head import Hint
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.installation import Installation
from zerotail.core.record import DIGEST_BYTES, HEADER_NAME, decode_column
from zerotail.errors import Refused, ZerotailError
from zerotail.flow.stage import Place, Stage, Taken, take_batch
from zerotail.kafka.cluster import Cluster
from zerotail.ports import Batch, End, ReadHead
from zerotail.spark.patience import SlowError, run_within
from zerotail.spark.reader_options import reader_options
from zerotail.spark.results import Outcome, Slow, pack_outcome, unpack_outcome
from zerotail.spark.strange import has_news, sift, stop_at
from zerotail.spark.task_errors import WORKER_DIED
from zerotail.spark.worker import settle_worker
from zerotail.wiring import AdapterSettings, run_to_end, shared_adapters

FROM_THE_BEGINNING = Offset(-2)
"""Spark's word for the beginning of a log."""

_REHEARSE_SECONDS = 2.0
_RESULT = "partition int, outcome binary"
_HEADER = (
    f"case when size(headers) = 1 and headers[0].key = '{HEADER_NAME}' then headers[0].value "
    f"else get(filter(headers, header -> header.key = '{HEADER_NAME}'), 0).value end as header"
)


@dataclass(frozen=True, slots=True)
class StageTask:
    """What a task needs beside its records; it travels to the executors."""

    stages: Mapping[PartitionNumber, Stage]
    adapters: AdapterSettings
    log: str
    """Which log the offsets belong to."""
    installation: Installation
    """Whose records are not foreign."""
    patience_seconds: float = 0.5
    """So long others wait for a handler that is at one record."""


class StageEndedError(Exception):
    """The stage must not go on here: the end of its story, or an error with an exit code of its own."""

    def __init__(self, end: End | ZerotailError) -> None:
        super().__init__(end.value if isinstance(end, End) else end.message)


class NewPartitionError(Exception):
    """The topic has a partition that the query did not know when it was started."""


Note = Callable[[PartitionNumber, Taken], None]


def read_records(
    spark: SparkSession,
    cluster: Cluster,
    topic: TopicName,
    starts: Mapping[PartitionNumber, Offset],
    limit: int | None = None,
) -> DataFrame:
    """The records of a topic as a stream, from the given offset of each partition, so many at a time."""
    options = {
        **reader_options(cluster),
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {str(partition): start for partition, start in starts.items()}}),
    }
    if limit is not None:
        options["maxOffsetsPerTrigger"] = str(limit)
    records = spark.readStream.format("kafka").options(**options).load()
    return records.select("partition", "offset", "value", expr(_HEADER))


def start_stage_query(
    records: DataFrame,
    task: StageTask,
    places: MutableMapping[PartitionNumber, Place],
    checkpoint: str,
    note: Note,
    may_take: Callable[[], bool] = lambda: True,
    ended: Callable[[End | ZerotailError], None] = lambda _end: None,
    alone: Alone | None = None,
) -> StreamingQuery:
    """Take batch after batch; `places` is kept up to date, `note` hears what became of each partition's batch.

    Before each batch `may_take` is asked; it may wait. A batch that must not be taken is passed over, most of them
    unread: a standby whose follower fills a topic must be at its end when its turn comes. Now and then one is read by
    workers that are ready to take it: that is how a standby stays warm. What ends the query is told to `ended`, since
    the query itself shows only Spark's account of it. Partitions that are `alone` are left out, and others are sent
    there.
    """
    alone = alone or Alone()

    rehearse_at = 0.0

    def on_batch(batch: DataFrame, _number: int) -> None:
        nonlocal rehearse_at
        if not may_take():
            if time.monotonic() >= rehearse_at:
                batch.mapInArrow(_rehearsal_of(task), _RESULT).collect()
                rehearse_at = time.monotonic() + _REHEARSE_SECONDS
            return
        left_out = alone.partitions()
        work = _task_of_batch(task, dict(places), left_out, time.time_ns() // 1000)
        for row in _carry_out(batch, work, [one for one in places if one not in left_out], alone):
            outcome = unpack_outcome(row.outcome)
            partition = PartitionNumber(row.partition)
            if outcome is None:
                raise NewPartitionError(f"partition {row.partition} is new")
            if isinstance(outcome, Slow):
                alone.send(partition, "its handler is at one record for long")
                continue
            if not isinstance(outcome, Taken):
                ended(outcome)
                raise StageEndedError(outcome)
            places[partition] = replace(places[partition], head=outcome.head, stopped=outcome.stopped)
            note(partition, outcome)

    writer = records.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="0 seconds").start()


Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Alone:
    """Where partitions are sent that others must not wait for."""

    partitions: Callable[[], Set[PartitionNumber]] = frozenset
    """Those that are there."""
    send: Callable[[PartitionNumber, str], None] = lambda _partition, _why: None


def _carry_out(batch: DataFrame, work: Work, partitions: Iterable[PartitionNumber], alone: Alone) -> Iterator[Row]:
    """The results of a batch's tasks. When a worker dies Spark gives up the whole batch, and says nothing of which."""
    try:
        yield from batch.mapInArrow(work, _RESULT).collect()
    except Exception as error:
        if WORKER_DIED not in str(error):
            raise
    else:
        return
    for partition in partitions:
        try:
            yield from batch.where(f"partition = {partition}").mapInArrow(work, _RESULT).collect()
        except Exception as error:
            if WORKER_DIED not in str(error):
                raise
            alone.send(partition, "a worker died of it")


def _task_of_batch(
    task: StageTask, places: Mapping[PartitionNumber, Place], left_out: Set[PartitionNumber], at: int
) -> Work:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        arrived = list(batches)
        if not sum(batch.num_rows for batch in arrived):
            return
        table = pa.Table.from_batches(arrived)
        partition = PartitionNumber(table.column("partition")[0].as_py())
        place = places.get(partition)
        if partition in left_out or (place is not None and place.stopped is not None):
            return  # what lies behind the record at which it stopped is read again by the next start
        outcome = None if place is None else _take(task, partition, place, table, at)
        yield pa.RecordBatch.from_arrays(
            [pa.array([partition], pa.int32()), pa.array([pack_outcome(outcome)], pa.binary())],
            names=["partition", "outcome"],
        )

    return work


def _rehearsal_of(task: StageTask) -> Work:
    """A task that takes nothing: it reads its records, and the head of their partition."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for batch in batches:
            if batch.num_rows:
                with suppress(Refused):  # whoever takes it will say so
                    batch_of(pa.Table.from_batches([batch]), task.installation)
                partition = PartitionNumber(batch.column("partition")[0].as_py())
                if partition in task.stages:
                    shared_adapters(task.adapters).carry_out(ReadHead(task.stages[partition].name, partition))
        yield from ()

    return work


def _take(task: StageTask, partition: PartitionNumber, place: Place, table: pa.Table, at: int) -> Outcome:
    """Take everything, or what lies in front of a record that nobody can take."""
    stage, adapters = task.stages[partition], shared_adapters(task.adapters)
    try:
        sifted = sift(table, place, task.log, task.installation)
        if sifted.asks_for_news and run_to_end(has_news(stage, place), adapters):
            return End.SUPERSEDED  # it is said by the head why, if it must not go on
        taken: Taken | End = Taken(place.head, 0, 0, 0, 0, 0)
        table = sifted.table
        if table.num_rows:
            hint = Hint(task.log, Offset(table.column("offset")[table.num_rows - 1].as_py() + 1))
            story = take_batch(stage, place, batch_of(table, task.installation), hint, at)
            taken = run_within(story, adapters, task.patience_seconds, SlowError)
        if isinstance(taken, End) or sifted.stopped is None or taken.stopped is not None:
            return taken
        stopped = run_to_end(stop_at(stage, taken, sifted.stopped), adapters)
    except ZerotailError as error:
        return error
    except SlowError:
        return Slow()
    return stopped if isinstance(stopped, End) else replace(taken, stopped=stopped)


def batch_of(table: pa.Table, installation: Installation) -> Batch:
    """Records by column, as the stage's story takes them; the number 0 stands for a producer that is not ours."""
    headers = decode_column(table.column("header"), installation)
    digests = headers.digests.tobytes()
    return Batch(
        headers.producers.tolist(),
        headers.serials.tolist(),
        headers.epochs.tolist(),
        [digests[place : place + DIGEST_BYTES] for place in range(0, len(digests), DIGEST_BYTES)],
        table.column("value").to_pylist(),
        strangers=headers.strangers,
    )
