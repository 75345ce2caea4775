"""Write records for a rehearsal, and read what comes behind the end: plain clients, nothing that decides anything."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.reading import READING, read_whole

_ANSWER_SECONDS = 10.0
_READ_SECONDS = 120.0
WRITING = {"acks": "all", "enable.idempotence": True, "linger.ms": 5, "log_level": 0}


class Feeder:
    """Appends to a topic and counts what was acknowledged."""

    def __init__(self, cluster: Cluster, topic: str, **settings: Any) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._client = Producer({**WRITING, **cluster.for_client(), **named})
        self._topic = topic
        self.acknowledged = 0
        self.failed = 0

    def send(self, value: bytes, key: bytes | None = None, partition: int = -1) -> None:
        """Queue one record; waits while the queue is full."""
        while True:
            try:
                self._client.produce(self._topic, value, key, partition, on_delivery=self._note)
                break
            except BufferError:
                self._client.poll(0.05)
        self._client.poll(0)

    def send_many(self, values: Sequence[bytes]) -> None:
        """Queue records in one go, which is several times cheaper, and does not count what was acknowledged."""
        waiting: list[dict[str, Any]] = [{"value": value} for value in values]
        while waiting:
            self._client.produce_batch(self._topic, waiting)
            waiting = [one for one in waiting if one.pop("_error", None) is not None]
            self._client.poll(0.05 if waiting else 0)

    def finish(self) -> None:
        """Wait until everything is acknowledged; `Unavailable` when it is not."""
        if self._client.flush(_ANSWER_SECONDS) or self.failed:
            raise Unavailable(f"{self._topic} does not take records.", code="ZT553")

    def _note(self, error: KafkaError | None, _message: object) -> None:
        self.failed += error is not None
        self.acknowledged += error is None


class Tail:
    """Reads the committed records that come into a topic from now on."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._client = Consumer({**READING, **cluster.for_client(), "fetch.wait.max.ms": 20})
        try:
            partitions = self._client.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].partitions
            places = [TopicPartition(topic, number) for number in partitions]
            # Where the end is now, and not where it is when the first question arrives.
            ends = [self._client.get_watermark_offsets(one, timeout=_ANSWER_SECONDS)[1] for one in places]
        except KafkaException as error:
            raise Unavailable(f"{topic} cannot be read: {error.args[0].str()}.", code="ZT553") from error
        self._client.assign(
            [TopicPartition(topic, one.partition, end) for one, end in zip(places, ends, strict=True)]
            or [TopicPartition(topic, 0, OFFSET_END)]
        )

    def read(self, seconds: float) -> Iterator[tuple[bytes, float]]:
        """The values that come in this time, each with the moment at which it was seen."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._client.consume(1000, min(0.05, seconds)):
                if message.error() is None:
                    yield message.value() or b"", time.time()

    def close(self) -> None:
        """Give the client back."""
        self._client.close()


def count_records(cluster: Cluster, topic: str, partitions: int) -> dict[int, tuple[int, int]]:
    """How many committed records each partition has, and a checksum over their values in order."""
    found = dict.fromkeys(range(partitions), (0, 0))
    for message in read_whole(cluster, topic, range(partitions), Deadline.after(_READ_SECONDS)):
        count, checksum = found[message.partition() or 0]
        found[message.partition() or 0] = (count + 1, crc32(message.value() or b"", checksum))
    return found
