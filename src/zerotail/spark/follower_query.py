"""The follower on Spark: one query at the standby, one task for each partition whose journal has grown.

A task runs the follower's story (`failover/follow.py`) until the topic of its partition holds all of the journal, and
keeps its clients for the next time. With `shadow` it also runs the handler over what is new and compares the hashes and
the state with what the active site recorded: the first difference is told, with its place.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, SiteName, StageName
from zerotail.failover.follow import Followed, catch_up
from zerotail.operate.adapters import BadDayAdapters
from zerotail.ports import End
from zerotail.running.parts import StagePart
from zerotail.running.shadow import Shadowed, Shadows
from zerotail.spark.follow_source import FollowSource
from zerotail.spark.producer_query import open_worker
from zerotail.spark.results import pack, unpack
from zerotail.spark.worker import settle_worker
from zerotail.wiring import run_to_end

_OUTCOME = "stage string, partition int, outcome binary"


@dataclass(frozen=True, slots=True)
class Progress:
    """What became of one partition in one pass."""

    followed: Followed
    lag_seconds: float | None
    shadowed: Shadowed | None


Note = Callable[[StageName, PartitionNumber, Progress], None]


@dataclass(frozen=True, slots=True)
class FollowTask:
    """What a task needs; it travels to the executors."""

    configuration: bytes
    """Pickled: one and the same text names the clients that a worker keeps."""
    site: SiteName
    stages: Mapping[StageName, StagePart]
    shadow: bool


def follow_task(
    configuration: Configuration, site: SiteName, stages: Iterable[StagePart], *, shadow: bool
) -> FollowTask:
    """The task that follows these stages."""
    return FollowTask(pickle.dumps(configuration), site, {part.name: part for part in stages}, shadow)


def start_follower_query(
    spark: SparkSession, dsn: str, task: FollowTask, checkpoint: str, note: Note
) -> StreamingQuery:
    """Follow as long as the query runs; `note` hears what became of each partition."""
    options = {"dsn": dsn, "stages": ",".join(task.stages)}
    grown = spark.readStream.format(FollowSource.name()).options(**options).load()

    def on_batch(batch: DataFrame, _number: int) -> None:
        for row in batch.mapInArrow(_work(task), _OUTCOME).collect():
            progress = unpack(row.outcome, Progress)
            note(StageName(row.stage), PartitionNumber(row.partition), progress)

    writer = grown.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="100 milliseconds").start()


def _work(task: FollowTask) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for row in (row for batch in batches for row in batch.to_pylist()):
            progress = _pass(task, StageName(row["stage"]), PartitionNumber(row["partition"]))
            if progress is not None:
                yield pa.RecordBatch.from_pydict(
                    {
                        "stage": pa.array([row["stage"]], pa.string()),
                        "partition": pa.array([row["partition"]], pa.int32()),
                        "outcome": pa.array([pack(progress)], pa.binary()),
                    }
                )

    return work


def _pass(task: FollowTask, name: StageName, partition: PartitionNumber) -> Progress | None:
    """One pass over one partition; None when the site is no standby any more."""
    stage = task.stages[name].at(partition)
    adapters = _adapters(task.configuration, task.site)
    open_worker(adapters.settings.dsn, adapters.settings.kafka)
    followed = run_to_end(catch_up(stage, task.site), adapters)
    if isinstance(followed, End):
        return None
    shadowed = _shadows(task.configuration, task.site).catch_up(stage) if task.shadow else None
    return Progress(followed, lag_of(followed, time.time()), shadowed)


def lag_of(followed: Followed, now: float) -> float | None:
    """How many seconds ago the oldest record that the topic lacks was journaled; 0 when it lacks none, None when nobody
    knows what it lacks.
    """
    if followed.missing_since is None:
        return None if followed.missing is None else 0.0
    return max(0.0, now - followed.missing_since / 1e6)


@cache
def _adapters(configuration: bytes, site: SiteName) -> BadDayAdapters:
    """The clients of this worker."""
    return BadDayAdapters(pickle.loads(configuration), site)  # noqa: S301 - made by our own driver


@cache
def _shadows(configuration: bytes, site: SiteName) -> Shadows:
    """The shadows that this worker keeps. Each worker has some of its own, which catch up by themselves."""
    return Shadows(pickle.loads(configuration), site)  # noqa: S301 - made by our own driver
