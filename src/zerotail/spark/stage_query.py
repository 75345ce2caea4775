"""A stage on Spark: one streaming query, one task and one database transaction per Kafka partition and batch.

The driver keeps the heads; each batch hands a task the head it must find, and gets back the head behind it. So an older
driver is told by the compare-and-set that another one has gone on, and ends. A task that runs twice is refused by the
same rule: nothing is stored twice, and the query ends and is started again from the heads.

Where to read is in the heads. Spark's own checkpoint begins empty at every start and is thrown away at the end.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.head import Hint
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.record import DIGEST_BYTES, HEADER_NAME, decode_column
from zerotail.flow.stage import Place, Stage, Taken, take_batch
from zerotail.ports import Batch, End
from zerotail.wiring import AdapterSettings, run_to_end, shared_adapters

FROM_THE_BEGINNING = Offset(-2)
"""Spark's word for the beginning of a log."""

_RESULT = "partition int, outcome binary"
_HEADER = (
    f"case when size(headers) = 1 and headers[0].key = '{HEADER_NAME}' then headers[0].value "
    f"else filter(headers, header -> header.key = '{HEADER_NAME}')[0].value end as header"
)


@dataclass(frozen=True, slots=True)
class StageTask:
    """What a task needs beside its records; it travels to the executors."""

    stages: Mapping[PartitionNumber, Stage]
    adapters: AdapterSettings
    log: str
    """Which log the offsets belong to."""


class StageEndedError(Exception):
    """The stage must not go on here; the reason is a story's end."""

    def __init__(self, end: End) -> None:
        super().__init__(end.value)
        self.end = end


Note = Callable[[PartitionNumber, Taken], None]


def read_records(
    spark: SparkSession, settings: Mapping[str, str], topic: TopicName, starts: Mapping[PartitionNumber, Offset]
) -> DataFrame:
    """The records of a topic as a stream, from the given offset of each partition."""
    options = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {str(partition): start for partition, start in starts.items()}}),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        **settings,
    }
    records = spark.readStream.format("kafka").options(**options).load()
    return records.select("partition", "offset", "value", expr(_HEADER))


def start_stage_query(
    records: DataFrame, task: StageTask, places: MutableMapping[PartitionNumber, Place], checkpoint: str, note: Note
) -> StreamingQuery:
    """Take batch after batch; `places` is kept up to date, `note` hears what became of each partition's batch."""

    def on_batch(batch: DataFrame, _number: int) -> None:
        work = _task_of_batch(task, dict(places), time.time_ns() // 1000)
        for row in batch.mapInArrow(work, _RESULT).collect():
            outcome = pickle.loads(row.outcome)  # noqa: S301 - made by our own task a moment ago
            if isinstance(outcome, End):
                raise StageEndedError(outcome)
            partition = PartitionNumber(row.partition)
            places[partition] = replace(places[partition], head=outcome.head)
            note(partition, outcome)

    writer = records.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="0 seconds").start()


def _task_of_batch(
    task: StageTask, places: Mapping[PartitionNumber, Place], at: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = list(batches)
        if not sum(batch.num_rows for batch in arrived):
            return
        table = pa.Table.from_batches(arrived)
        partition = PartitionNumber(table.column("partition")[0].as_py())
        hint = Hint(task.log, Offset(table.column("offset")[table.num_rows - 1].as_py() + 1))
        story = take_batch(task.stages[partition], places[partition], batch_of(table), hint, at)
        outcome = pickle.dumps(run_to_end(story, shared_adapters(task.adapters)))
        yield pa.RecordBatch.from_arrays(
            [pa.array([partition], pa.int32()), pa.array([outcome], pa.binary())], names=["partition", "outcome"]
        )

    return work


def batch_of(table: pa.Table) -> Batch:
    """Records by column, as the stage's story takes them; the number 0 stands for a producer that is not ours."""
    headers = decode_column(table.column("header"))
    digests = headers.digests.tobytes()
    return Batch(
        headers.producers.tolist(),
        headers.serials.tolist(),
        headers.epochs.tolist(),
        [digests[place : place + DIGEST_BYTES] for place in range(0, len(digests), DIGEST_BYTES)],
        table.column("value").to_pylist(),
    )
