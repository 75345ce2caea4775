"""`zerotail-mirror`: which partitions of a source cluster have grown, as a stream.

    spark.dataSource.register(MirrorSource)
    spark.readStream.format("zerotail-mirror").options(secret=…).load()

A row says how far a partition reaches; the records do not come through the JVM. Whoever copies looks up by itself
where it stands, so a row that is lost or comes twice does no harm. New topics that fit the pattern, new partitions and
changed settings are found here as well, and are made at the target before the first row about them; a topic that is
gone is told by a row with a note. A partition whose records were not all copied in one go comes again at once. Every
few seconds all of them come again: one that could not be copied is tried again, and workers keep their connections.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.core.topology import Flow
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.places import Partition, Places
from zerotail.mirror.topics import TopicFacts, plan_topic

SCHEMA = "topic string, partition int, topic_id string, next_offset bigint, note string"
_ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("next_offset", pa.int64()),
        ("note", pa.string()),
    ]
)
_TURN = "turn"
_REACHED = "reached/"
_TURN_SECONDS = 5
_DISCOVER_SECONDS = 2.0
_SETTINGS_SECONDS = 30.0
_NO_PARTITION = -1
Looked = dict[str, int]
"""What was seen at one look, each under a key of its own."""


@dataclass(frozen=True, slots=True)
class Ends:
    """A flow and the clusters at its two ends; it travels to the process that looks."""

    flow: Flow
    source: Cluster
    target: Cluster

    def packed(self) -> str:
        """As the value of an option; its name keeps Spark from showing it, for clusters have passwords."""
        return base64.b64encode(pickle.dumps(self)).decode()


class MirrorSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "zerotail-mirror"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return MirrorReader(pickle.loads(base64.b64decode(self.options["secret"])))  # noqa: S301 - made by our driver


class Grown(InputPartition):
    """One partition of the source and where it ends, or a note about a topic."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(None)
        self.row = dict(row)


class MirrorReader(DataSourceStreamReader):
    """Looks at the clusters in the driver; the executors have nothing to read."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._discovery: Discovery | None = None

    def initialOffset(self) -> Looked:  # noqa: N802
        return {}

    def latestOffset(self, start: Looked, limit: Any) -> Looked:  # noqa: ARG002, N802
        if self._discovery is None:
            self._discovery = Discovery(self._ends)
        return {**self._discovery.look(), _TURN: int(time.time()) // _TURN_SECONDS}

    def partitions(self, start: Looked, end: Looked) -> Sequence[InputPartition]:
        turned = start.get(_TURN) != end[_TURN]
        return [
            Grown(_row(key, value))
            for key, value in end.items()
            if key != _TURN and not key.startswith(_REACHED)
            if value != start.get(key)
            or (turned and not _is_note(key))
            or (_REACHED + key in end and start.get(_REACHED + key) != end[_REACHED + key])
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Grown)  # noqa: S101 - planned above
        yield pa.RecordBatch.from_pylist([partition.row], _ARROW)


def _is_note(key: str) -> bool:
    return not key.endswith("/")


def _row(key: str, value: int) -> dict[str, Any]:
    topic, partition, topic_id, note = key.split("/", 3)
    return {
        "topic": topic,
        "partition": int(partition),
        "topic_id": topic_id,
        "next_offset": value,
        "note": note,
    }


class Discovery:
    """The topics that a flow takes: found, made ready at the target, and how far each partition reaches."""

    def __init__(self, ends: Ends) -> None:
        self._flow = ends.flow
        self._source = Catalogue(ends.source, ends.flow.source)
        self._target = Catalogue(ends.target, ends.flow.target)
        self._ends = ends
        self._logs = Places(ends.source, ends.flow.source)
        self._logs_are_old = False
        self._copies = Places(ends.target, ends.flow.target)
        self._ended: Mapping[Partition, int] = {}
        """Where each partition ended at the last look."""
        self._whole: dict[Partition, int] = {}
        """Up to where each is known to be copied."""
        self._known: dict[Partition, str] = {}
        """Partitions that can be copied, and the id of their topic."""
        self._notes: dict[str, int] = {}
        copied = self._copies.read(ends.flow)
        self._copied = {name for topic, _ in copied if (name := self._flow.source_topic(topic)) is not None}
        self._seen: dict[str, tuple[str, int]] = {}
        self._discover_at = self._settings_at = 0.0

    def look(self) -> Looked:
        """The end of every partition, how far some are copied, and what is to be told."""
        now = time.monotonic()
        if now >= self._discover_at:
            self._discover(with_settings=now >= self._settings_at)
            self._discover_at = now + _DISCOVER_SECONDS
        ends = self._logs.ends(self._known)
        # A client does not look again for a partition that was not there when it looked first.
        self._logs_are_old = len(ends) < len(self._known)
        found = {self._key(one): int(end) for one, end in ends.items()}
        left = {_REACHED + self._key(one): reached for one, reached in self._left(ends).items()}
        return found | left | self._notes

    def _key(self, one: Partition) -> str:
        topic, partition = one
        return f"{topic}/{partition}/{self._known[one]}/"

    def _left(self, ends: Mapping[Partition, int]) -> dict[Partition, int]:
        """Partitions that have not grown since the last look and are not copied to their end, and how far they are."""
        asked = [one for one, end in ends.items() if self._ended.get(one) == end != self._whole.get(one)]
        self._ended = ends
        reached = self._copies.reached(self._flow, asked) if asked else {}
        self._whole |= {one: ends[one] for one, offset in reached.items() if offset >= ends[one]}
        return {one: int(offset) for one, offset in reached.items() if offset < ends[one]}

    def _discover(self, *, with_settings: bool) -> None:
        if self._logs_are_old:
            self._logs = Places(self._ends.source, self._flow.source)
        counts, _ = self._source.partition_counts()
        taken = {name: count for name, count in counts.items() if self._flow.takes(name)}
        ids = self._source.topic_ids(taken)
        seen = {name: (ids[name], count) for name, count in taken.items() if name in ids}
        if seen != self._seen or with_settings:
            self._make_ready(seen)
            self._settings_at = time.monotonic() + _SETTINGS_SECONDS
        for name in sorted(({*self._seen} | self._copied) - {*seen}):
            self._tell(name, "the topic is gone from the source; its copy stays")
        self._copied -= {*seen}
        self._known = {
            (TopicName(name), PartitionNumber(partition)): topic_id
            for name, (topic_id, count) in seen.items()
            for partition in range(count)
        }
        self._seen = seen

    def _make_ready(self, seen: Mapping[str, object]) -> None:
        wanted = self._source.facts(lambda name: name in seen)
        names = {self._flow.target_topic(name) for name in wanted}
        there: Mapping[str, TopicFacts] = self._target.facts(lambda name: name in names)
        _, brokers = self._target.partition_counts()
        for name, facts in sorted(wanted.items()):
            target_name = self._flow.target_topic(name)
            plan = plan_topic(facts, target_name, there.get(target_name), brokers)
            if not plan.is_ready:
                self._target.carry_out(plan)
                done = "made" if plan.make else f"grown to {plan.partitions} partitions" if plan.partitions else ""
                self._tell(name, f"{target_name} at {self._flow.target}: {done or f'set {_listed(plan.settings)}'}")
            for note in plan.notes:
                self._tell(name, note)

    def _tell(self, topic: str, note: str) -> None:
        """Once: a key that stays the same makes no row."""
        self._notes[f"{topic}/{_NO_PARTITION}//{note}"] = 1


def _listed(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
