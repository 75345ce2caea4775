"""What can be seen of a consumer group from outside: members, their partitions, its positions, the ends of the logs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as LateError
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin._listoffsets import OffsetSpec

from zerotail.consume.liveness import Look, PartitionSeen
from zerotail.consume.places import Partition
from zerotail.errors import Refused, Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client

_ASK_SECONDS = 5.0
_REBALANCING = (ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.COMPLETING_REBALANCING)


class GroupWatch:
    """Looks at one group again and again."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._group = group
        self._client = admin_client(cluster)

    def look(self, clock: Callable[[], float]) -> Look:
        """The group now; `Refused` when Kafka knows no such group."""
        try:
            return self._look(clock)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                raise self._unknown() from error
            raise Unavailable(f"Kafka does not answer: {self._client.reason(error)}.", code="ZT502") from error
        except LateError as error:
            raise Unavailable("Kafka does not answer in time.", code="ZT502") from error

    def _look(self, clock: Callable[[], float]) -> Look:
        described = self._client.describe_consumer_groups([self._group], request_timeout=_ASK_SECONDS)
        group = described[self._group].result(_ASK_SECONDS)
        positions = self._positions()
        if group.state == ConsumerGroupState.DEAD and not positions:
            raise self._unknown()
        owners = {
            Partition(one.topic, one.partition): f"{member.client_id} at {member.host}"
            for member in group.members
            for one in (member.assignment.topic_partitions if member.assignment else ())
        }
        partitions = sorted({*positions, *owners})
        begins = self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        seen = tuple(
            PartitionSeen(one, positions.get(one, begins[one]), ends[one], owners.get(one, "")) for one in partitions
        )
        members = tuple(sorted(str(member.member_id) for member in group.members))
        return Look(clock(), group.state in _REBALANCING, members, seen)

    def _positions(self) -> dict[Partition, int]:
        asked = [ConsumerGroupTopicPartitions(self._group)]
        stored = self._client.list_consumer_group_offsets(asked, request_timeout=_ASK_SECONDS)
        found = stored[self._group].result(_ASK_SECONDS).topic_partitions
        return {Partition(one.topic, one.partition): int(one.offset) for one in found if one.offset >= 0}

    def _offsets(self, partitions: list[Partition], which: Any) -> dict[Partition, int]:
        if not partitions:
            return {}
        asked = {TopicPartition(one.topic, one.number): which for one in partitions}
        answers = self._client.list_offsets(asked, request_timeout=_ASK_SECONDS)
        return {
            Partition(one.topic, one.partition): int(answer.result(_ASK_SECONDS).offset)
            for one, answer in answers.items()
        }

    def _unknown(self) -> Refused:
        return Refused(
            f"Kafka knows no consumer group {self._group!r}.",
            code="ZT504",
            tries=["kafka-consumer-groups --bootstrap-server … --list"],
        )
