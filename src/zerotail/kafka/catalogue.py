"""The topics of a cluster: what they are like, and how they are made, grown and set."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import TimeoutError as LateError
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.kafka.admin import somebody_listens
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import Admin
from zerotail.mirror.topics import TopicFacts, TopicPlan

_TIMEOUT_SECONDS = 10.0
_GIVEN_TO_TOPIC = 1
_TOPIC_ID_PADDING = "=="


def id_bytes(topic_id: str) -> bytes:
    """Kafka's text of a topic id as its 16 bytes."""
    return base64.urlsafe_b64decode(topic_id + _TOPIC_ID_PADDING)


def id_text(topic_id: bytes) -> str:
    """The 16 bytes of a topic id as Kafka writes them."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _id_of(described: Any) -> str:
    # The client's own text is in another alphabet, with slashes in it.
    number = described.topic_id
    return id_text(struct.pack(">qq", number.get_most_significant_bits(), number.get_least_significant_bits()))


class Catalogue:
    """Asks one cluster about its topics; `Unavailable` when it does not answer."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._name = name
        if not somebody_listens(cluster.bootstrap):
            raise Unavailable(f"nobody listens at {cluster.bootstrap}, the cluster {name}.", code="ZT550")
        self._client = Admin(cluster)

    def partition_counts(self) -> tuple[dict[str, int], int]:
        """How many partitions each topic has, and how many brokers there are."""
        try:
            seen = self._client.list_topics(timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise self._translated(error) from error
        return {name: len(topic.partitions) for name, topic in seen.topics.items()}, len(seen.brokers)

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """The id of each topic that is there."""
        return {name: _id_of(described) for name, described in self._described(names).items()}

    def facts(self, wanted: Callable[[str], bool]) -> dict[str, TopicFacts]:
        """The topics that are wanted, with their settings."""
        names = sorted(name for name in self.partition_counts()[0] if wanted(name))
        described = self._described(names)
        settings = self._settings(described)
        return {
            name: TopicFacts(
                name,
                _id_of(topic),
                len(topic.partitions),
                min((len(one.replicas) for one in topic.partitions), default=0),
                *settings[name],
            )
            for name, topic in described.items()
            if name in settings
        }

    def carry_out(self, plan: TopicPlan) -> None:
        """Make, grow and set a topic; what is there already stays."""
        try:
            if plan.make:
                made = NewTopic(plan.topic, plan.partitions, plan.copies, config=dict(plan.settings))
                _finish(self._client.create_topics([made], request_timeout=_TIMEOUT_SECONDS), "TOPIC_ALREADY_EXISTS")
            elif plan.partitions:
                more = NewPartitions(plan.topic, plan.partitions)
                _finish(self._client.create_partitions([more], request_timeout=_TIMEOUT_SECONDS), "INVALID_PARTITIONS")
            if plan.settings and not plan.make:
                self._set(plan.topic, plan.settings)
        except KafkaException as error:
            what = f"{plan.topic} could not be made ready at {self._name}: {self._client.reason(error)}"
            raise Unavailable(what, code="ZT551") from error
        if plan.make or plan.partitions:
            self._wait_until_led(plan)

    def _wait_until_led(self, plan: TopicPlan) -> None:
        """A new partition has no leader for a moment, and the broker that is asked hears of it a little later."""

        def is_led() -> bool:
            found = self._described([plan.topic]).get(plan.topic)
            led = [one for one in found.partitions if one.leader is not None] if found else []
            return len(led) >= max(1, plan.partitions)

        wait_until(f"{plan.topic} has leaders at {self._name}", is_led, Deadline.after(_TIMEOUT_SECONDS))

    def _described(self, names: Iterable[str]) -> dict[str, Any]:
        asked = list(names)
        if not asked:
            return {}
        found: dict[str, Any] = {}
        try:
            answers = self._client.describe_topics(TopicCollection(asked), request_timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise self._translated(error) from error
        for name, answer in answers.items():
            try:
                found[name] = answer.result(_TIMEOUT_SECONDS)
            except KafkaException as error:
                if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":  # it went between two questions
                    raise self._translated(error) from error
            except LateError as error:
                raise Unavailable(f"{self._name} does not answer in time.", code="ZT550") from error
        return found

    def _settings(self, names: Iterable[str]) -> dict[str, tuple[Mapping[str, str], frozenset[str]]]:
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not asked:
            return {}
        found: dict[str, Any] = {}
        for resource, answer in self._client.describe_configs(asked, request_timeout=_TIMEOUT_SECONDS).items():
            try:
                entries = answer.result(_TIMEOUT_SECONDS)
            except KafkaException as error:
                raise self._translated(error) from error
            values = {name: entry.value for name, entry in entries.items() if entry.value is not None}
            given = frozenset(name for name, entry in entries.items() if entry.source == _GIVEN_TO_TOPIC)
            found[resource.name] = (values, given)
        return found

    def _set(self, topic: str, settings: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for answer in self._client.incremental_alter_configs([resource], request_timeout=_TIMEOUT_SECONDS).values():
            answer.result(_TIMEOUT_SECONDS)

    def _translated(self, error: KafkaException) -> Unavailable:
        return Unavailable(f"{self._name} does not answer: {self._client.reason(error)}.", code="ZT550")


def _finish(answers: Mapping[str, Any], harmless: str) -> None:
    for answer in answers.values():
        try:
            answer.result(_TIMEOUT_SECONDS)
        except KafkaException as error:
            if error.args[0].name() != harmless:
                raise
