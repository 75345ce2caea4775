"""Look at single records of a log: the one at an offset, or the next of one origin."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.provenance import Provenance, find_provenance
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.places import Partition
from zerotail.kafka.reading import READING

_ANSWER_SECONDS = 5.0
_POLL_SECONDS = 0.05
_FETCH = {"fetch.wait.max.ms": 20, "queued.min.messages": 1, "fetch.message.max.bytes": 100_000}


def timestamps_at(cluster: Cluster, places: Mapping[Partition, Offset], seconds: float = 2.0) -> dict[Partition, int]:
    """The timestamp, in ms, of the first record at or behind each offset; what does not come in time is left out."""
    if not places:
        return {}
    consumer = Consumer({**READING, **_FETCH, **cluster.for_client()})
    try:
        consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in places.items()])
        found: dict[Partition, int] = {}
        until = time.monotonic() + seconds
        while len(found) < len(places) and time.monotonic() < until:
            for message in consumer.consume(1000, _POLL_SECONDS):
                if message.error() is None:
                    key = (TopicName(message.topic() or ""), PartitionNumber(message.partition() or 0))
                    found.setdefault(key, message.timestamp()[1])
        return found
    finally:
        consumer.close()


class LogWindow:
    """Reads one partition from any offset on; only what is committed."""

    def __init__(self, cluster: Cluster, topic: TopicName, partition: PartitionNumber) -> None:
        self._place = (topic, partition)
        self._consumer = Consumer({**READING, **_FETCH, **cluster.for_client()})

    def bounds(self) -> tuple[Offset, Offset]:
        """Where the log begins, and the offset behind its end."""
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(*self._place), timeout=_ANSWER_SECONDS)
        except KafkaException as error:
            raise _unavailable(self._place, error) from error
        return Offset(low), Offset(high)

    def records(self, start: Offset) -> Iterator[tuple[Offset, Provenance | None]]:
        """The records from `start` to the end: where each lies, and where it comes from."""
        self._consumer.assign([TopicPartition(*self._place, start)])
        until = time.monotonic() + _ANSWER_SECONDS
        while time.monotonic() < until:
            for message in self._consumer.consume(500, _POLL_SECONDS):
                error = message.error()
                if error is None:
                    headers: Any = message.headers() or ()
                    yield Offset(message.offset() or 0), find_provenance(headers)
                    until = time.monotonic() + _ANSWER_SECONDS
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
                else:
                    raise _unavailable(self._place, KafkaException(error))
        raise Unavailable(f"{self._place[0]}/{self._place[1]} cannot be read in time.", code="ZT553")

    def close(self) -> None:
        """Give the client back."""
        self._consumer.close()


def _unavailable(place: Partition, error: KafkaException) -> Unavailable:
    return Unavailable(f"{place[0]}/{place[1]} cannot be read: {error.args[0].str()}.", code="ZT553")
