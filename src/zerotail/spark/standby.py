"""An application that waits for its turn: it follows, and is warm when the turn comes.

Everything that costs seconds the first time is done before it counts: the session is there, Python workers run with
their modules loaded, clients are connected, and the classes that read Kafka as a stream have been used once, on what
the follower wrote. All of that happens beside the wait: the turn may come at any moment, also before it is warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zerotail.core.epoch import topic_at
from zerotail.core.identity import Offset, PartitionNumber, SiteName, TopicName
from zerotail.errors import ZerotailError
from zerotail.kafka.log import admin_client, log_bounds
from zerotail.ports import Standing
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.transaction import Session
from zerotail.running.parts import StagePart
from zerotail.running.report import Tell
from zerotail.spark.kept_query import KeptQuery
from zerotail.spark.running_follower import RunningFollower
from zerotail.spark.stage_query import read_records
from zerotail.spark.worker import settle_worker
from zerotail.wiring import AdapterSettings

_LOOK_SECONDS = 0.1
_FIRST_PASS_SECONDS = 20.0
_WARM_BATCH_SECONDS = 10.0
_WARM_RECORDS = 500
_ROUNDS = 3


class Standby:
    """The work of an application between its start and its turn."""

    def __init__(
        self,
        spark: SparkSession,
        site: SiteName,
        follower: RunningFollower,
        stages: tuple[StagePart, ...],
        settings: AdapterSettings,
        wait_for_turn: Callable[[Event], bool],
    ) -> None:
        self._spark = spark
        self._site = site
        self._follower = follower
        self._stages = stages
        self._settings = settings
        self._wait_for_turn = wait_for_turn
        self._over = Event()
        self._thread: Thread | None = None

    def wait(self, folder: Path, tell: Tell, stop: Event) -> bool:
        """Follow and be warm until the turn comes; False when stopped before."""
        work = Thread(target=self._work, args=(folder, tell), name="standby", daemon=True)
        self._thread = work
        work.start()
        try:
            return self._wait_for_turn(stop)
        finally:
            # Not waited for: the stages begin while the follower ends.
            self._over.set()

    def close(self) -> None:
        """Return when its work has ended."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self, folder: Path, tell: Tell) -> None:
        kept = KeptQuery(self._follower, folder, tell)
        with suppress(Py4JError, PySparkException):  # the session is gone: whoever waits for the turn says so
            warm_up(self._spark)
            ended = kept.look()
            self._follower.passed.wait(_FIRST_PASS_SECONDS)
            warm = self._warm_reading(tell)
            tell(f"waiting at {self._site}: warm, until this site is the active one")
            while ended is None and not self._over.wait(_LOOK_SECONDS):
                ended = kept.look()
                if not warm and self._follower.appended.is_set():
                    warm = self._warm_reading(tell)
            if isinstance(ended, ZerotailError):
                tell(f"the follower has ended: {ended.message}")
            kept.end()

    def _warm_reading(self, tell: Tell) -> bool:
        """Read the last records of each topic once, the way a stage does; False while there are none."""
        read = False
        database = Session(self._settings.dsn, "zerotail standby")
        try:
            standing = database.read(read_standing)
            for topic in {part.topic for part in self._stages}:
                if not self._over.is_set() and isinstance(standing, Standing):
                    read |= self._read_the_end(topic_at(topic, standing.rejoined.get(self._site)))
        except (ZerotailError, PySparkException) as error:
            tell(f"not warm: {str(error).splitlines()[0]}")
        finally:
            database.close()
        return read

    def _read_the_end(self, topic: TopicName) -> bool:
        (first, behind), *_ = log_bounds(admin_client(self._settings.kafka), topic, [PartitionNumber(0)]).values()
        if first == behind:
            return False
        read = Event()
        starts = {PartitionNumber(0): Offset(max(first, behind - _WARM_RECORDS))}
        records = read_records(self._spark, self._settings.kafka, topic, starts, _WARM_RECORDS // _ROUNDS)
        seen = 0

        def on_batch(batch: object, _number: int) -> None:
            nonlocal seen
            batch.mapInArrow(_pass_through, "partition int").collect()  # type: ignore[attr-defined]
            seen += 1
            if seen == _ROUNDS:
                read.set()

        query = records.writeStream.foreachBatch(on_batch).trigger(processingTime="0 seconds").start()
        try:
            return read.wait(_WARM_BATCH_SECONDS)
        finally:
            query.stop()


def _pass_through(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["partition"])


def warm_up(spark: SparkSession) -> None:
    """Have workers started and code loaded before it counts: the first job of a cold session takes seconds."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import zerotail.spark.follower_query
        import zerotail.spark.producer_query
        import zerotail.spark.stage_query  # noqa: F401

        settle_worker()
        yield from batches

    for _ in range(_ROUNDS):
        spark.range(1000).repartition(2).mapInArrow(work, "id bigint").collect()
