"""Numbered records: written with any settings, acknowledged one by one, read back from the log.

For drills that ask what an acknowledgement is worth. A record is its number and some padding. The writer tells its
caller which numbers the client calls delivered; for `acks=0` that is when the record was handed to the socket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, ElectionType, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.cimpl import NewTopic

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.cursor import SETTINGS as READING
from zerotail.kafka.log import Admin

_NUMBER_BYTES = 8
_PADDING = bytes(92)
_ASK_SECONDS = 60.0
_READ_AT_ONCE = 20_000
_WRITING = {
    # As long as a cluster may be without a leader: what the client gave up on would be told as not acknowledged.
    "delivery.timeout.ms": 300_000,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,
}
Acknowledge = Callable[[str, int], None]
"""Gets a topic and a number."""


class NumberedWriter:
    """One client; what it cannot queue or deliver is not acknowledged, and that is all that is said of it."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, Any], acknowledge: Acknowledge) -> None:
        self._settings = {**_WRITING, **cluster.for_client(), **settings, "on_delivery": self._delivered}
        self._acknowledge = acknowledge
        self._client = Producer(self._settings)

    def write(self, topic: str, partition: int, numbers: Iterable[int]) -> None:
        """Queue records; returns at once."""
        try:
            for number in numbers:
                self._client.produce(topic, number.to_bytes(_NUMBER_BYTES, "big") + _PADDING, partition=partition)
        except BufferError:  # the queue is full: nobody is told that these were delivered
            self._client.poll(0)
        except KafkaException:  # an idempotent client whose sequence is broken ends for good
            self.close()
            self._client = Producer(self._settings)

    def poll(self) -> None:
        """Tell what has been acknowledged."""
        self._client.poll(0)

    def wait_until_idle(self, deadline: Deadline) -> bool:
        """Whether everything that was queued got an answer in time."""
        return self._client.flush(deadline.seconds_left) == 0

    def close(self) -> None:
        """Throw the client away with what it had queued."""
        with suppress(KafkaException):
            self._client.purge()
            self._client.flush(1)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None  # noqa: S101 - written above
            self._acknowledge(message.topic() or "", int.from_bytes(value[:_NUMBER_BYTES], "big"))


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who leads a partition, and who has everything."""

    topic: str
    partition: int
    leader: int | None
    in_sync: tuple[int, ...]


def observe_partitions(client: Admin, topics: Iterable[str]) -> list[PartitionState] | None:
    """The partitions of these topics; None when nobody answers, or not about all of them."""
    try:
        known = client.list_topics(timeout=4.0).topics
    except KafkaException:
        return None
    wanted = [known.get(topic) for topic in topics]
    if any(topic is None or not topic.partitions for topic in wanted):
        return None
    return [state for topic in wanted if topic is not None for state in _states(topic)]


def _states(topic: TopicMetadata) -> list[PartitionState]:
    return [
        PartitionState(str(topic.topic), one.id, one.leader if one.leader >= 0 else None, tuple(sorted(one.isrs)))
        for one in topic.partitions.values()
    ]


def create_topics(
    client: Admin, topics: Mapping[str, Mapping[str, str]], partitions: int, replicas: Sequence[int]
) -> None:
    """Make topics with these settings, all of them led by the first of these brokers."""
    wanted = [
        NewTopic(name, num_partitions=partitions, replica_assignment=[list(replicas)] * partitions, config=dict(given))
        for name, given in topics.items()
    ]
    _finish(client, client.create_topics(wanted, request_timeout=_ASK_SECONDS))


def delete_topics(client: Admin, topics: Iterable[str]) -> None:
    """Remove topics."""
    _finish(client, client.delete_topics(list(topics), request_timeout=_ASK_SECONDS))


def elect_preferred(client: Admin, places: Iterable[tuple[str, int]], deadline: Deadline) -> None:
    """Let the first replica of each partition lead it again."""
    # confluent-kafka 2.16 takes no time limit here: with one, it fails on its own list of arguments.
    asked = client.elect_leaders(ElectionType.PREFERRED, [TopicPartition(*place) for place in places])
    with suppress(KafkaException):  # whether it happened is seen from the partitions
        asked.result(max(0.1, deadline.seconds_left))


def _finish(client: Admin, asked: Mapping[str, Any]) -> None:
    try:
        for future in asked.values():
            future.result(_ASK_SECONDS)
    except KafkaException as error:
        raise Unavailable(f"Kafka does not answer: {client.reason(error)}", code="ZT502") from error


def read_numbers(cluster: Cluster, topics: Sequence[str], partitions: int, deadline: Deadline) -> dict[str, list[int]]:
    """Every number that the topics hold, in the order of the logs, as often as it is there."""
    consumer = Consumer({**READING, **cluster.for_client()})
    try:
        places = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]
        ends = {(one.topic, one.partition): _bounds(consumer, one, deadline) for one in places}
        left = {place for place, (low, high) in ends.items() if high > low}
        consumer.assign([TopicPartition(*place, ends[place][0]) for place in left])
        found: dict[str, list[int]] = defaultdict(list)
        while left:
            if deadline.passed:
                raise Unavailable(f"not in time: {len(left)} partitions are read to their end", code="ZT560")
            for message in consumer.consume(_READ_AT_ONCE, 0.2):
                _take(message, found, left, ends)
        return found
    finally:
        consumer.close()


def _bounds(consumer: Consumer, place: TopicPartition, deadline: Deadline) -> tuple[int, int]:
    def ask() -> tuple[int, int] | None:
        try:
            return consumer.get_watermark_offsets(place, timeout=1.0)
        except KafkaException:
            return None

    return wait_until(f"{place.topic}/{place.partition} says where it ends", ask, deadline)


def _take(
    message: Message,
    found: dict[str, list[int]],
    left: set[tuple[str, int]],
    ends: Mapping[tuple[str, int], tuple[int, int]],
) -> None:
    place = (message.topic() or "", message.partition() or 0)
    error = message.error()
    if error is None:
        value = message.value()
        assert value is not None  # noqa: S101 - a record of ours
        found[place[0]].append(int.from_bytes(value[:_NUMBER_BYTES], "big"))
        if (message.offset() or 0) + 1 >= ends[place][1]:
            left.discard(place)
    elif error.code() == KafkaError._PARTITION_EOF:
        left.discard(place)
