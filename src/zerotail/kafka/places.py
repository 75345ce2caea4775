"""The places of a flow, as the target keeps them, and the bounds of the logs that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as LateError
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from zerotail.core.copying import Place, Run, read_place
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.topology import Flow
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.admin import somebody_listens
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.copy_order import place_group
from zerotail.kafka.log import Admin
from zerotail.kafka.reading import ask_coordinator, peeking, read_committed

_ANSWER_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_COORDINATOR_SECONDS = 15.0
_ABSENT = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PART",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "_NOENT",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    }
)
"""It is not there yet, went between two questions, or its leader changes at this moment."""

Partition = tuple[TopicName, PartitionNumber]


class Places:
    """Asks one cluster; `Unavailable` when it does not answer."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._name = name
        if not somebody_listens(cluster.bootstrap):
            raise Unavailable(f"nobody listens at {cluster.bootstrap}, the cluster {name}.", code="ZT550")
        self._cluster = cluster
        self._client = Admin(cluster)

    def read(self, flow: Flow) -> dict[Partition, Place]:
        """How far each partition has been copied, by its name at the target."""
        found = self.committed(place_group(flow), lambda topic: flow.source_topic(topic) is not None)
        read = {partition: read_place(offset, metadata) for partition, (offset, metadata) in found.items()}
        return {partition: place for partition, place in read.items() if place is not None}

    def reached(self, flow: Flow, partitions: Iterable[Partition]) -> dict[Partition, Offset]:
        """How far partitions of the source have been copied, as far as the target says so now."""
        asked = {(flow.target_topic(topic), number): (topic, number) for topic, number in partitions}
        try:
            found = self._committed(place_group(flow), asked, Deadline.after(_LOOK_SECONDS))
        except KafkaException:
            return {}
        return {asked[one]: Offset(offset) for one, (offset, _) in found.items()}

    def committed(self, group: str, wanted: Callable[[str], bool]) -> dict[Partition, tuple[int, str]]:
        """The offsets that a consumer group has committed in the topics that are wanted, with their metadata."""
        try:
            topics = peeking(self._cluster, group).list_topics(timeout=_ANSWER_SECONDS).topics
            asked = [
                (TopicName(name), PartitionNumber(number))
                for name, topic in topics.items()
                if wanted(name)
                for number in topic.partitions
            ]
            return self._committed(group, asked, Deadline.after(_COORDINATOR_SECONDS))
        except KafkaException as error:
            raise self._translated(error) from error

    def _committed(
        self, group: str, partitions: Iterable[Partition], deadline: Deadline
    ) -> dict[Partition, tuple[int, str]]:
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        found = read_committed(peeking(self._cluster, group), asked, deadline)
        return {
            (TopicName(one.topic), PartitionNumber(one.partition)): (one.offset, one.metadata or "")
            for one in found
            if one.offset >= 0
        }

    def bounds(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[Offset, Offset]]:
        """Where each log begins, and the offset behind its last committed record; one that is missing is left out."""
        asked = list(partitions)
        begins = self._offsets(asked, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self.ends(asked)
        return {one: (begins[one], ends[one]) for one in asked if one in begins and one in ends}

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, Offset]:
        """The offset behind the last committed record of each log."""
        return self._offsets(list(partitions), OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def _offsets(self, partitions: list[Partition], which: Any) -> dict[Partition, Offset]:
        if not partitions:
            return {}
        try:
            answers = self._client.list_offsets(
                {TopicPartition(topic, partition): which for topic, partition in partitions},
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=_ANSWER_SECONDS,
            )
        except KafkaException as error:
            raise self._translated(error) from error
        found = {}
        for one, answer in answers.items():
            try:
                key = (TopicName(one.topic), PartitionNumber(one.partition))
                found[key] = Offset(answer.result(_ANSWER_SECONDS).offset)
            except KafkaException as error:
                if error.args[0].name() not in _ABSENT:
                    raise self._translated(error) from error
            except LateError as error:
                raise self._translated(error) from error
        return found

    def commit(self, group: str, offsets: dict[Partition, Offset]) -> None:
        """Set the positions of a group that has no members."""
        wanted = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, wanted)]

        def set_them(seconds: float) -> list[TopicPartition]:
            answers = self._client.alter_consumer_group_offsets(request, request_timeout=seconds)
            return list(answers[group].result(seconds).topic_partitions)

        try:
            ask_coordinator(set_them, Deadline.after(_COORDINATOR_SECONDS))
        except (KafkaException, LateError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> Unavailable:
        reason = self._client.reason(error) if isinstance(error, KafkaException) else "no answer in time"
        return Unavailable(f"{self._name} does not answer: {reason}.", code="ZT550")


def next_run(places: Iterable[Place], token: str) -> Run:
    """The name of a new start: higher than all that have written places."""
    return Run(max((place.run.generation for place in places), default=0) + 1, token)
