"""A cluster as it is set at this moment: brokers, racks, topics, copies, settings. Looking changes nothing.

What a broker or a topic does not tell, because it is not alive or because we have not the right, stands in the answer
as a text with the reason, in the place of the settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._metadata import PartitionMetadata, TopicMetadata
from confluent_kafka.admin._resource import ResourceType

from zerotail.audit.facts import PartitionFacts, Settings
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.admin import somebody_listens
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.features import observe_features
from zerotail.kafka.log import Admin

_ELIGIBLE_LEADERS = "eligible.leader.replicas.version"
_SHARE_OF_TIME = 0.8
"""Of the deadline: a broker that is late is told to be so before whoever asked gives up on all."""
_DEFAULT_SOURCE = 5


@dataclass(frozen=True, slots=True)
class TopicSurvey:
    """One topic's partitions, and its settings or why they are not known."""

    partitions: tuple[PartitionFacts, ...]
    settings: Settings | str


@dataclass(frozen=True, slots=True)
class ClusterSurvey:
    """What a cluster answers."""

    racks: Mapping[int, str | None]
    """Of the brokers that are alive."""
    eligible_leaders: int | str
    brokers: Mapping[int, Settings | str]
    """Also those that are not alive, as far as partitions name them."""
    topics: Mapping[str, TopicSurvey]


def survey_cluster(cluster: Cluster, deadline: Deadline) -> ClusterSurvey:
    """Look once; `Unavailable` when no broker answers."""
    deadline = Deadline.after(deadline.seconds_left * _SHARE_OF_TIME)
    if not somebody_listens(cluster.bootstrap):
        raise Unavailable(f"nobody listens at {cluster.bootstrap}", code="ZT502")
    client = Admin(cluster)
    try:
        nodes = client.describe_cluster(request_timeout=_left(deadline)).result(_left(deadline)).nodes
        described = client.list_topics(timeout=_left(deadline)).topics
    except (KafkaException, LateError) as error:
        reason = client.reason(error) if isinstance(error, KafkaException) else "no answer in time"
        raise Unavailable(f"no broker answers: {reason}", code="ZT502") from error
    partitions = {name: _partitions(topic.partitions.values()) for name, topic in described.items()}
    # A broker is asked by itself: only it knows its settings, and one that is silent shall not take others with it.
    asked = [[ConfigResource(ResourceType.BROKER, str(node.id))] for node in nodes]
    asked += [[ConfigResource(ResourceType.TOPIC, name) for name in partitions]] if partitions else []
    settings = _settings(client, asked, deadline)
    named = {broker for some in partitions.values() for one in some for broker in one.replicas}
    dead = sorted(named - {node.id for node in nodes})
    return ClusterSurvey(
        racks={node.id: node.rack for node in nodes},
        eligible_leaders=_eligible_leaders(cluster, deadline),
        brokers={node.id: settings[ResourceType.BROKER, str(node.id)] for node in nodes}
        | dict.fromkeys(dead, "it is not alive"),
        topics={
            name: TopicSurvey(some, settings[ResourceType.TOPIC, name] if some else _why_empty(described[name]))
            for name, some in sorted(partitions.items())
        },
    )


def _partitions(described: Iterable[PartitionMetadata]) -> tuple[PartitionFacts, ...]:
    found = [
        PartitionFacts(one.id, one.leader if one.leader >= 0 else None, tuple(one.replicas), tuple(one.isrs))
        for one in described
    ]
    return tuple(sorted(found, key=lambda one: one.partition))


def _why_empty(topic: TopicMetadata) -> str:
    """Of a topic that is being deleted, or that we may not see."""
    return str(topic.error.str()) if topic.error else "it has no partitions"


def _settings(
    client: Admin, asked: list[list[ConfigResource]], deadline: Deadline
) -> dict[tuple[ResourceType, str], Settings | str]:
    """The settings of each, or why they are not known; all requests are on their way at once."""
    found: dict[tuple[ResourceType, str], Settings | str] = {}
    on_their_way = [client.describe_configs(some, request_timeout=_left(deadline)) for some in asked]
    for resource, future in [one for some in on_their_way for one in some.items()]:
        try:
            entries = future.result(_left(deadline))
        except KafkaException as error:
            found[resource.restype, resource.name] = client.reason(error)
        except LateError:
            found[resource.restype, resource.name] = "no answer in time"
        else:
            found[resource.restype, resource.name] = Settings(
                {name: entry.value for name, entry in entries.items() if entry.value is not None},
                frozenset(name for name, entry in entries.items() if entry.source == _DEFAULT_SOURCE),
            )
    return found


def _eligible_leaders(cluster: Cluster, deadline: Deadline) -> int | str:
    try:
        return observe_features(cluster, deadline).get(_ELIGIBLE_LEADERS, 0)
    except Unavailable as error:
        return error.message


def _left(deadline: Deadline) -> float:
    return max(0.1, deadline.seconds_left)
