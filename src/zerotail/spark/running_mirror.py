"""A flow of a mirror while it runs on Spark."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.copying import Kind, Run
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.kafka.copy_order import Outcome
from zerotail.kafka.places import Places, next_run
from zerotail.ports import End
from zerotail.running.report import Tell
from zerotail.spark.mirror_query import Work, start_mirror_query
from zerotail.spark.mirror_source import Ends, MirrorSource

Heard = Callable[[str, TopicName, PartitionNumber, Outcome], None]
"""Flow, topic, partition, and what became of it."""


class RunningMirror:
    """One flow; what it hears from its tasks it tells to whoever watches."""

    def __init__(
        self,
        spark: SparkSession,
        ends: Ends,
        accepted: frozenset[tuple[Kind, str]],
        tell: Tell,
        heard: Heard,
    ) -> None:
        self._spark = spark
        self._ends = ends
        self._accepted = accepted
        self._tell = tell
        self._heard = heard
        self._run: Run | None = None
        self._superseded = False
        self._told: dict[tuple[TopicName, PartitionNumber], str] = {}

    @property
    def name(self) -> str:
        """The flow's name."""
        return f"mirror {self._ends.flow.name}"

    @property
    def waits_for_turn(self) -> bool:
        """Never."""
        return False

    def start(self, checkpoint: str) -> StreamingQuery:
        """Copy from wherever the target says, under one name from the first start to the end of this process."""
        if self._run is None:
            places = Places(self._ends.target, self._ends.flow.target).read(self._ends.flow)
            self._run = next_run(places.values(), secrets.token_hex(4))
        self._spark.dataSource.register(MirrorSource)
        work = Work(self._ends, self._run, self._accepted)
        return start_mirror_query(self._spark, work, checkpoint, self._note)

    def observe(self) -> End | bool:
        """It ends when a newer start is at work."""
        return End.SUPERSEDED if self._superseded else False

    def reason_to_end(self) -> End | None:
        """The same, after its query failed."""
        return End.SUPERSEDED if self._superseded else None

    def waits(self, reason: str) -> None:
        """Nothing more to say than what is told anyway."""

    def close(self) -> None:
        """Nothing is held here: the workers have the clients."""

    def _note(self, topic: TopicName, partition: PartitionNumber, outcome: Outcome) -> None:
        self._superseded = self._superseded or outcome.state == "fenced"
        said = "" if outcome.state == "copying" and not outcome.note else f"{outcome.state}: {outcome.note}"
        where = topic if partition < 0 else f"{topic}/{partition}"
        if outcome.note and self._told.get((topic, partition)) != said:
            self._tell(f"{self.name} {where} {said}" if outcome.state != "copying" else f"{where}: {outcome.note}")
        self._told[topic, partition] = said
        self._heard(self._ends.flow.name, topic, partition, outcome)
