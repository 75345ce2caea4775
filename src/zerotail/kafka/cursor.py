"""Read a partition from a place that we know, never from one that Kafka remembers for us."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from zerotail.core.admission import FOREIGN
from zerotail.core.head import Hint
from zerotail.core.identity import Epoch, Offset, PartitionNumber, Serial, TopicName
from zerotail.core.installation import Installation
from zerotail.core.record import HEADER_BYTES, HEADER_NAME, NO_DIGEST, Header, decode
from zerotail.errors import Refused as RefusedError
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client, log_identity
from zerotail.ports import Batch, HintLost, Polled, PollRecords, Unreachable

_TIMEOUT_SECONDS = 5.0
_POLL_SECONDS = 0.2
_FOREIGN = Header(Epoch(0), FOREIGN, Serial(0), NO_DIGEST)
SETTINGS = {
    "group.id": "zerotail",  # the client insists on one; it is never joined and nothing is committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 50,
    # A full queue would otherwise rest for a second before the next fetch, and be empty long before.
    "fetch.queue.backoff.ms": 10,
    "log_level": 0,
}


class Cursor:
    """Reads one partition; where it stands is what the caller says at every poll."""

    def __init__(self, cluster: Cluster, topic: TopicName, partition: PartitionNumber) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partition = partition
        self._consumer: Consumer | None = None
        self._log = ""
        self._next: int | None = None

    def poll(self, effect: PollRecords) -> Polled | HintLost | Unreachable:
        """The next records behind a hint, or from the beginning of the log."""
        try:
            if self._consumer is None or self._next != (effect.hint.offset if effect.hint else None):
                self._open(effect.hint)
            return self._read(effect.limit, effect.installation)
        except _LostPlaceError:
            self.close()
            return HintLost()
        except (KafkaException, Unavailable, RefusedError):
            self.close()
            return Unreachable()

    def close(self) -> None:
        """Give the client back."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._next = None, None

    def _open(self, hint: Hint | None) -> None:
        self.close()
        self._log = log_identity(admin_client(self._cluster), self._topic)
        consumer = Consumer({**SETTINGS, **self._cluster.for_client()})
        self._consumer = consumer
        place = TopicPartition(self._topic, self._partition)
        low, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_SECONDS)
        if hint is not None and (hint.log != self._log or not low <= hint.offset <= high):
            raise _LostPlaceError
        offset = low if hint is None else hint.offset  # a number: for "the beginning" the client takes half a second
        consumer.assign([TopicPartition(self._topic, self._partition, offset)])
        self._next = offset

    def _read(self, limit: int, installation: Installation) -> Polled:
        assert self._consumer is not None  # noqa: S101 - opened above
        messages = []
        for message in self._consumer.consume(min(limit, 1_000_000), _POLL_SECONDS):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
                raise _LostPlaceError
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        if messages:
            self._next = (messages[-1].offset() or 0) + 1
        hint = Hint(self._log, Offset(self._next or 0))
        return Polled(batch_of(messages, installation), hint, time.time_ns() // 1000)


class _LostPlaceError(Exception):
    """The log does not reach to the place that was asked for."""


def batch_of(messages: list[Message], installation: Installation) -> Batch:
    """Messages by column; one without our header, or of another installation, is foreign."""
    found = [_header(message) for message in messages]
    headers = [header if header is not None and installation.owns(header.mark) else _FOREIGN for header in found]
    return Batch(
        [header.producer for header in headers],
        [header.serial for header in headers],
        [header.epoch for header in headers],
        [header.digest for header in headers],
        [message.value() or b"" for message in messages],
        strangers=sum(header is not None and not installation.owns(header.mark) for header in found),
    )


def _header(message: Message) -> Header | None:
    for entry in message.headers() or ():
        name, value = entry[0], entry[1]
        if name == HEADER_NAME and isinstance(value, bytes) and len(value) == HEADER_BYTES:
            return decode(value)
    return None
