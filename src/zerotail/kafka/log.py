"""Which log a topic is: an offset means something in one log of one cluster only.

A topic that was deleted and made again has another identifier, a wiped cluster another cluster id; a hint into the old
one is then recognised as lost instead of being taken for a place in the new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from zerotail.core.identity import Offset, TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.complaint import Complaints

_TIMEOUT_SECONDS = 10.0
_NO_TOPIC = "UNKNOWN_TOPIC_OR_PART"


class MissingTopicError(Unavailable):
    """There is no such topic, or not yet: somebody may have deleted it, and whoever needs it makes it again."""


class Admin(AdminClient):
    """A client for questions about the cluster; librdkafka's own log stays quiet."""

    def __init__(self, cluster: Cluster) -> None:
        self._complaints = Complaints()
        settings: dict[str, Any] = {**cluster.for_client(), "log_level": 0, "error_cb": self._complaints.note}
        super().__init__(settings)

    def reason(self, error: KafkaException) -> str:
        """Why a question failed: a declined login rather than the time-out that it led to."""
        self.poll(0)
        return self._complaints.behind(error.args[0].str())


def admin_client(cluster: Cluster) -> Admin:
    """The client of a cluster."""
    return Admin(cluster)


def log_identity(client: Admin, topic: TopicName) -> str:
    """Cluster and topic identifier; `MissingTopicError` when there is no such topic."""
    try:
        cluster = client.describe_cluster(request_timeout=_TIMEOUT_SECONDS).result()
        described = client.describe_topics(TopicCollection([topic]), request_timeout=_TIMEOUT_SECONDS)
        return f"{cluster.cluster_id}/{described[topic].result().topic_id}"
    except KafkaException as error:
        raise _translated(client, topic, error) from error


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """How a topic is made."""

    partitions: int
    copies: int
    min_insync: int = 1
    retention: timedelta | None = None
    """None leaves it to the cluster."""


def ensure_topic(client: Admin, topic: TopicName, wanted: TopicSettings) -> int:
    """Make a topic, or add the partitions that it lacks; answers how many it has then."""
    create_topic(client, topic, wanted)
    # The broker that is asked may hear of the topic a moment later than the one that made it.
    partitions = wait_until(
        f"Kafka knows the topic {topic}", lambda: find_partition_count(client, topic), Deadline.after(_TIMEOUT_SECONDS)
    )
    if partitions >= wanted.partitions:
        return partitions
    added = client.create_partitions([NewPartitions(topic, wanted.partitions)], request_timeout=_TIMEOUT_SECONDS)
    try:
        added[topic].result()
    except KafkaException as error:
        if (find_partition_count(client, topic) or 0) < wanted.partitions:
            raise Unavailable(
                f"topic {topic} could not be given {wanted.partitions} partitions: {client.reason(error)}", code="ZT502"
            ) from error
    return wanted.partitions


def find_partition_count(client: Admin, topic: TopicName) -> int | None:
    """How many partitions a topic has; None when there is no such topic."""
    try:
        described = client.describe_topics(TopicCollection([topic]), request_timeout=_TIMEOUT_SECONDS)
        return len(described[topic].result().partitions)
    except KafkaException as error:
        if error.args[0].name() == _NO_TOPIC:
            return None
        raise _translated(client, topic, error) from error


def log_bounds(client: Admin, topic: TopicName, partitions: Iterable[int]) -> dict[int, tuple[Offset, Offset]]:
    """Where each partition's log begins, and the offset behind its end."""
    places = [TopicPartition(topic, partition) for partition in partitions]
    try:
        ends = [
            {
                place.partition: Offset(future.result().offset)
                for place, future in client.list_offsets(
                    dict.fromkeys(places, spec), request_timeout=_TIMEOUT_SECONDS
                ).items()
            }
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]
        ]
    except KafkaException as error:
        raise _translated(client, topic, error) from error
    first, behind = ends
    return {partition: (first[partition], behind[partition]) for partition in first}


def wait_until_readable(client: Admin, topic: TopicName, partition: int, deadline: Deadline) -> None:
    """Wait until a reader of committed records sees all that the partition holds now.

    A commit is answered when the coordinator has decided it; the marker that shows it to readers follows by itself. A
    transaction that somebody else has left open in front of it is waited for, too.
    """
    place = TopicPartition(topic, partition)
    _, behind = log_bounds(client, topic, [partition])[partition]

    def readable() -> bool:
        asked = client.list_offsets(
            {place: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=_TIMEOUT_SECONDS,
        )
        return bool(asked[place].result().offset >= behind)

    try:
        wait_until(f"what partition {partition} of {topic} holds can be read", readable, deadline)
    except KafkaException as error:
        raise _translated(client, topic, error) from error


def create_topic(client: Admin, topic: TopicName, wanted: TopicSettings) -> None:
    """Make a topic; one that is there already stays as it is."""
    settings = {
        # Old instructions come with old timestamps, and retention goes by timestamps: they would be deleted at once.
        "message.timestamp.type": "LogAppendTime",
        "min.insync.replicas": str(wanted.min_insync),
    }
    if wanted.retention is not None:
        settings["retention.ms"] = str(int(wanted.retention.total_seconds() * 1000))
    made = client.create_topics(
        [NewTopic(topic, num_partitions=wanted.partitions, replication_factor=wanted.copies, config=settings)],
        request_timeout=_TIMEOUT_SECONDS,
    )
    try:
        made[topic].result()
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise Unavailable(f"topic {topic} could not be made: {client.reason(error)}", code="ZT502") from error


def _translated(client: Admin, topic: TopicName, error: KafkaException) -> Unavailable:
    if error.args[0].name() == _NO_TOPIC:
        return MissingTopicError(f"Kafka has no topic {topic}.", code="ZT501")
    return Unavailable(f"Kafka does not answer: {client.reason(error)}", code="ZT502")


def remove_topic(client: Admin, topic: TopicName | str) -> None:
    """Remove a topic with everything in it; one that is not there stays gone."""
    removed = client.delete_topics([str(topic)], request_timeout=_TIMEOUT_SECONDS)
    try:
        removed[str(topic)].result()
    except KafkaException as error:
        if error.args[0].name() != _NO_TOPIC:
            raise Unavailable(f"topic {topic} could not be removed: {client.reason(error)}", code="ZT502") from error
