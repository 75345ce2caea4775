"""Which log a topic is: an offset means something in one log of one cluster only.

A topic that was deleted and made again has another identifier, a wiped cluster another cluster id; a hint into the old
one is then recognised as lost instead of being taken for a place in the new one.
"""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from zerotail.core.identity import TopicName
from zerotail.errors import Refused, Unavailable

_TIMEOUT_SECONDS = 10.0


def admin_client(bootstrap: str) -> AdminClient:
    """A client for questions about the cluster; librdkafka's own log stays quiet."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def log_identity(client: AdminClient, topic: TopicName) -> str:
    """Cluster and topic identifier; `Refused` when there is no such topic."""
    try:
        cluster = client.describe_cluster(request_timeout=_TIMEOUT_SECONDS).result()
        described = client.describe_topics(TopicCollection([topic]), request_timeout=_TIMEOUT_SECONDS)
        return f"{cluster.cluster_id}/{described[topic].result().topic_id}"
    except KafkaException as error:
        if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
            raise Refused(f"Kafka has no topic {topic}.", code="ZT501") from error
        raise Unavailable(f"Kafka does not answer: {error.args[0].str()}", code="ZT502") from error


def create_topic(client: AdminClient, topic: TopicName, partitions: int, copies: int) -> None:
    """Make a topic; one that is there already stays as it is."""
    # Old instructions come with old timestamps, and retention goes by timestamps: they would be deleted at once.
    settings = {"message.timestamp.type": "LogAppendTime"}
    made = client.create_topics(
        [NewTopic(topic, num_partitions=partitions, replication_factor=copies, config=settings)],
        request_timeout=_TIMEOUT_SECONDS,
    )
    try:
        made[topic].result()
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise Unavailable(f"topic {topic} could not be made: {error.args[0].str()}", code="ZT502") from error
