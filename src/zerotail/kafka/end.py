"""The end of a log: where reading would go on, and which record lies there.

A follower takes its place from it, and a takeover stores it as the place where stages begin. A topic that is missing
at this site is made, empty: a site that came back has topics under new names, and whoever looks first makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

from zerotail.core.head import Hint
from zerotail.core.identity import Offset, PartitionNumber, ProducerNumber, Serial, TopicName
from zerotail.core.record import HEADER_BYTES, HEADER_NAME, decode
from zerotail.errors import Refused, Unavailable
from zerotail.kafka.admin import live_brokers
from zerotail.kafka.cursor import SETTINGS
from zerotail.kafka.log import admin_client, create_topic, log_identity
from zerotail.kafka.topic import End, Headers, Place, TopicReader
from zerotail.ports import LogEnd, ReadLogEnd, Unreachable

_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TopicShape:
    """How a topic is made where it is missing."""

    partitions: int
    copies: int


class LogEnds:
    """Looks at the ends of a site's logs."""

    def __init__(self, bootstrap: str, shapes: Mapping[TopicName, TopicShape]) -> None:
        self._bootstrap = bootstrap
        self._shapes = shapes
        self._readers: dict[tuple[TopicName, PartitionNumber], TopicReader] = {}

    def read(self, effect: ReadLogEnd) -> LogEnd | Unreachable:
        """The end of a log, taken before the record that lies there: nothing before it is passed over."""
        if not live_brokers(self._bootstrap):
            return Unreachable()
        try:
            log = self._identity(effect.topic)
            offset = self._end_of(effect.topic, effect.partition)
        except (KafkaException, Unavailable, Refused):
            return Unreachable()
        place = Place({"bootstrap.servers": self._bootstrap}, effect.topic, effect.partition, _TIMEOUT_SECONDS)
        reader = self._readers.setdefault((effect.topic, effect.partition), TopicReader(place))
        found = reader.find_last(_own_record)
        if isinstance(found, End):
            found = (ProducerNumber(0), Serial(0))
        return LogEnd(Hint(log, offset), *found) if isinstance(found, tuple) else Unreachable()

    def close(self) -> None:
        """Give the clients back."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _identity(self, topic: TopicName) -> str:
        client = admin_client(self._bootstrap)
        try:
            return log_identity(client, topic)
        except Refused:
            shape = self._shapes.get(_plain_name(topic, self._shapes))
            if shape is None:
                raise
            create_topic(client, topic, shape.partitions, shape.copies)
            return log_identity(client, topic)

    def _end_of(self, topic: TopicName, partition: PartitionNumber) -> Offset:
        consumer = Consumer({**SETTINGS, "bootstrap.servers": self._bootstrap})
        try:
            _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_TIMEOUT_SECONDS)
        finally:
            consumer.close()
        return Offset(high)


def _plain_name(topic: TopicName, known: Mapping[TopicName, TopicShape]) -> TopicName:
    """The name without the epoch in which the site came back."""
    name, dot, epoch = topic.rpartition(".")
    return TopicName(name) if topic not in known and dot and epoch.isdigit() else topic


def _own_record(headers: Headers) -> tuple[ProducerNumber, Serial] | None:
    header = headers.get(HEADER_NAME, b"")
    if len(header) != HEADER_BYTES:
        return None
    decoded = decode(header)
    return decoded.producer, decoded.serial
