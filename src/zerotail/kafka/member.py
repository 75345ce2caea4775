"""A member of a consumer group that reads from where it is told, never from where Kafka remembers.

An assignment is taken up in two steps: when Kafka hands partitions over, none of them is read; the caller finds out
where to go on, and says so. Between the two the member takes part in its group as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from zerotail.consume.consuming import Record
from zerotail.consume.places import Partition
from zerotail.core.identity import TopicName
from zerotail.errors import Refused, Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.complaint import Complaints
from zerotail.kafka.log import admin_client, log_identity

DEFAULTS = {"fetch.wait.max.ms": 50, "isolation.level": "read_committed", "log_level": 0}
SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "partition.assignment.strategy": "range",
}
"""What the rest relies on; nobody can set these otherwise."""
Headers = Iterable[tuple[str, bytes | None]]
_GONE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)
_DECLINED = (KafkaError._AUTHENTICATION, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)


class GroupMember:
    """A confluent-kafka consumer behind the words of `zerotail.consume`."""

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str], *, from_beginning: bool = True) -> None:
        self._complaints = Complaints()
        self._admin = admin_client(cluster)
        self._start = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self._changed: frozenset[Partition] | None = None
        own = {"group.id": group, "error_cb": self._complaints.note}
        self._consumer = Consumer({**DEFAULTS, **cluster.for_client(), **SETTINGS, **own})
        self._consumer.subscribe(
            list(topics), on_assign=self._assigned, on_revoke=self._withdrawn, on_lost=self._withdrawn
        )

    def find_assignment(self) -> frozenset[Partition] | None:
        """The partitions of this member, if they have changed since it was asked last; it reads none of them yet."""
        changed, self._changed = self._changed, None
        return changed

    def find_log(self, topic: str) -> str | None:
        """Which log a topic is: cluster and topic. None while Kafka does not say."""
        try:
            return log_identity(self._admin, TopicName(topic))
        except Unavailable:
            return None

    def read_from(self, places: Mapping[Partition, int | None]) -> None:
        """Read these partitions, held or not, and no others, from these offsets on; None: from the start chosen."""
        if self._changed is None:  # else the partitions have changed again, and the caller hears of it at once
            # The client remembers a pause from one assignment to the next. Resumed first: behind the assignment, it
            # could overtake where to read from.
            self._consumer.resume([_kafkas(one) for one in places])
            self._consumer.assign(
                [_kafkas(one, self._start if offset is None else offset) for one, offset in places.items()]
            )

    def poll(self, seconds: float, most: int) -> list[Record]:
        """Records that have come; takes part in rebalances meanwhile."""
        records = []
        for message in self._consumer.consume(most, seconds):
            error = message.error()
            if error is None:
                records.append(_record(message))
            else:
                self._judge(error, message)
        return records

    def hold(self, partition: Partition, offset: int) -> None:
        """Read nothing more of a partition, and go back to an offset."""
        with suppress(KafkaException):  # it is not ours any more
            self._consumer.pause([_kafkas(partition)])
            self._consumer.seek(_kafkas(partition, offset))

    def go_on(self, partition: Partition) -> None:
        """Read a held partition again."""
        with suppress(KafkaException):
            self._consumer.resume([_kafkas(partition)])

    def note(self, partition: Partition, next_offset: int) -> None:
        """Leave a copy of the place with Kafka, for those who watch; nobody reads it back."""
        with suppress(KafkaException):
            self._consumer.commit(offsets=[_kafkas(partition, next_offset)], asynchronous=True)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._changed = frozenset(Partition(one.topic, one.partition) for one in partitions)
        consumer.assign([])

    def _withdrawn(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._changed = frozenset()

    def _judge(self, error: KafkaError, message: Message) -> None:
        """Most of what a client reports it mends by itself; a place that is gone, or a closed door, it does not."""
        where = f"{message.topic()}/{message.partition()}"
        if error.code() in _GONE:
            raise Refused(
                f"the place in {where} is not in the log any more: {error.str()}.",
                code="ZT921",
                why="Records that nobody has worked on are gone, or the topic was made anew. Going on would skip them.",
                tries=["update zerotail_place set next_offset = …    # when you know what is missing"],
            )
        if error.fatal() or error.code() in _DECLINED:
            raise Unavailable(f"Kafka declines: {self._complaints.behind(error.str())}.", code="ZT502")


def _kafkas(partition: Partition, offset: int = OFFSET_BEGINNING) -> TopicPartition:
    return TopicPartition(partition.topic, partition.number, offset)


def _record(message: Message) -> Record:
    headers = tuple(cast(Headers, message.headers() or ()))
    place = Partition(message.topic() or "", message.partition() or 0)
    return Record(place, message.offset() or 0, message.key(), message.value(), message.timestamp()[1], headers)
