"""A flow on Spark: one query, one task for each partition that has grown.

A task keeps its clients for the next time. Tasks of one partition may come to different workers, one after the other or
both at once (a retry, speculation): the transactional id lets one of them write, and the place says where it goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.copying import Kind, Run
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.kafka.copy import PartitionCopier
from zerotail.kafka.copy_order import Order, Outcome
from zerotail.spark.mirror_source import Ends, MirrorSource
from zerotail.spark.results import pack, unpack
from zerotail.spark.worker import settle_worker

_OUTCOME = "topic string, partition int, outcome binary"
_PASS_SECONDS = 4.0
"""How long a task goes on where records keep coming; the other partitions wait for it."""
_MOST_COPIERS = 64
"""Per worker: each has three clients."""

Note = Callable[[TopicName, PartitionNumber, Outcome], None]


@dataclass(frozen=True, slots=True)
class Work:
    """What a task needs; it travels to the executors."""

    ends: Ends
    run: Run
    accepted: frozenset[tuple[Kind, str]]

    def order(self, topic: TopicName, topic_id: str, partition: PartitionNumber) -> Order:
        """The order to copy one partition."""
        accepted = frozenset(kind for kind, name in self.accepted if name == topic)
        ends = self.ends
        return Order(ends.flow, ends.source, ends.target, topic, topic_id, partition, self.run, accepted)


def start_mirror_query(spark: SparkSession, work: Work, checkpoint: str, note: Note) -> StreamingQuery:
    """Copy as long as the query runs; `note` hears what became of each partition."""
    grown = spark.readStream.format(MirrorSource.name()).option("secret", work.ends.packed()).load()

    def on_batch(batch: DataFrame, _number: int) -> None:
        for row in batch.mapInArrow(_task(work), _OUTCOME).collect():
            note(TopicName(row.topic), PartitionNumber(row.partition), unpack(row.outcome, Outcome))

    writer = grown.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="100 milliseconds").start()


def _task(work: Work) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for row in (row for batch in batches for row in batch.to_pylist()):
            outcome = Outcome("copying", row["note"])
            if not row["note"]:
                order = work.order(TopicName(row["topic"]), row["topic_id"], PartitionNumber(row["partition"]))
                outcome = copiers().of(order).work(row["next_offset"], _PASS_SECONDS)
            yield pa.RecordBatch.from_pydict(
                {
                    "topic": pa.array([row["topic"]], pa.string()),
                    "partition": pa.array([row["partition"]], pa.int32()),
                    "outcome": pa.array([pack(outcome)], pa.binary()),
                }
            )

    return copy


class Copiers:
    """The copiers of one worker, the least used given up first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Order, PartitionCopier] = OrderedDict()

    def of(self, order: Order) -> PartitionCopier:
        """The copier of a partition."""
        # What was accepted counts at the first opening only, so it does not tell copiers apart.
        key = replace(order, accepted=frozenset())
        copier = self._kept.pop(key, None) or PartitionCopier(order)
        self._kept[key] = copier
        while len(self._kept) > _MOST_COPIERS:
            self._kept.popitem(last=False)[1].close()
        return copier


@cache
def copiers() -> Copiers:
    """Those of this worker."""
    return Copiers()
