"""Numbered messages by plain clients, as somebody without a journal writes and reads them.

The writer knows which numbers Kafka acknowledged. The reader is a member of a consumer group and lets the client commit
its positions now and then, which is how most consumers are set.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.feed import WRITING

_READING = {
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "session.timeout.ms": 6_000,
    "log_level": 0,
}
_ANSWER_SECONDS = 10.0
_ROWS = 500


class AnsweredWriter:
    """Appends messages to one partition; knows of each number whether it was acknowledged."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._client = Producer({**WRITING, **cluster.for_client(), "delivery.timeout.ms": 60_000})
        self._topic = topic
        self._open: dict[int, bytes] = {}
        self._lock = Lock()

    def send(self, number: int, value: bytes) -> None:
        """Queue one message."""
        with self._lock:
            self._open[number] = value

        def note(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                with self._lock:
                    self._open.pop(number, None)

        self._client.produce(self._topic, value, None, 0, on_delivery=note)
        self._client.poll(0)

    def finish(self) -> None:
        """Wait for what has no answer; `Unavailable` when none comes."""
        if self._client.flush(_ANSWER_SECONDS) or self._open:
            raise Unavailable(f"{self._topic} does not take records.", code="ZT553")

    def give_up(self) -> dict[int, bytes]:
        """Throw the client away; the messages that nobody acknowledged."""
        self._client.poll(0)
        with self._lock:
            unanswered = dict(self._open)
        self._client.purge()
        return unanswered


def read_as_member(cluster: Cluster, topic: str, group: str) -> Iterator[list[bytes]]:
    """The values of a topic as a group's only member gets them, poll by poll, for ever; positions commit themselves."""
    client = Consumer({**_READING, **cluster.for_client(), "group.id": group})
    client.subscribe([topic])
    while True:
        messages = [one for one in client.consume(_ROWS, 0.1) if one.error() is None]
        if messages:
            yield [one.value() or b"" for one in messages]


def find_position(cluster: Cluster, topic: str, group: str) -> int | None:
    """The committed position of a group in partition 0 of a topic; None while it has none."""
    client = Consumer({**_READING, **cluster.for_client(), "group.id": group})
    try:
        (place,) = client.committed([TopicPartition(topic, 0)], timeout=_ANSWER_SECONDS)
    except KafkaException:
        return None
    finally:
        client.close()
    return place.offset if place.offset >= 0 else None
