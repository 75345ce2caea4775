"""The end of a log: where reading would go on, and which record lies there.

A follower takes its place from it, and a takeover stores it as the place where stages begin. A topic that is missing
at this site is made, empty: a site that came back has topics under new names, and whoever looks first makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from confluent_kafka import KafkaException

from zerotail.core.head import Hint
from zerotail.core.identity import Offset, PartitionNumber, ProducerNumber, Serial, TopicName
from zerotail.core.installation import Installation
from zerotail.core.record import HEADER_BYTES, HEADER_NAME, decode
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable
from zerotail.kafka.admin import somebody_listens
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import Admin, MissingTopicError, TopicSettings, admin_client, create_topic, log_identity
from zerotail.kafka.topic import End, Headers, Place, TopicReader
from zerotail.ports import LogEnd, ReadLogEnd, Unreachable

_TIMEOUT_SECONDS = 5.0


class LogEnds:
    """Looks at the ends of a site's logs; its clients are kept from look to look, and made anew after a failure."""

    def __init__(self, cluster: Cluster, shapes: Mapping[TopicName, TopicSettings]) -> None:
        self._cluster = cluster
        self._shapes = shapes
        self._admin: Admin | None = None
        self._readers: dict[tuple[TopicName, PartitionNumber], TopicReader] = {}

    def read(self, effect: ReadLogEnd) -> LogEnd | Unreachable:
        """The end of a log, taken before the record that lies there: nothing before it is passed over."""
        if not somebody_listens(self._cluster.bootstrap):
            return Unreachable()
        place = Place(self._cluster.for_client(), effect.topic, effect.partition, _TIMEOUT_SECONDS)
        reader = self._readers.setdefault((effect.topic, effect.partition), TopicReader(place))
        try:
            hint = self._hint_of(effect.topic, reader)
        except (KafkaException, Unavailable, Refused):
            self.close()
            return Unreachable()
        found = reader.find_last(partial(_own_record, effect.installation))
        if isinstance(found, End):
            return LogEnd(hint, ProducerNumber(0), Serial(0), reader.looked_at)
        return LogEnd(hint, *found, reader.looked_at) if isinstance(found, tuple) else Unreachable()

    def close(self) -> None:
        """Give the clients back."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        self._admin = None

    def _hint_of(self, topic: TopicName, reader: TopicReader) -> Hint:
        client = self._admin = self._admin or admin_client(self._cluster)
        try:
            return Hint(log_identity(client, topic), Offset(reader.end()))
        except MissingTopicError:
            shape = self._shapes.get(_plain_name(topic, self._shapes))
            if shape is None:
                raise
            create_topic(client, topic, shape)

        def find_hint() -> Hint | None:
            try:
                return Hint(log_identity(client, topic), Offset(reader.end()))
            except (KafkaException, MissingTopicError):
                return None

        # A new topic has no leader for a moment.
        return wait_until(f"topic {topic} has a leader", find_hint, Deadline.after(_TIMEOUT_SECONDS))


def _plain_name(topic: TopicName, known: Mapping[TopicName, TopicSettings]) -> TopicName:
    """The name without the epoch in which the site came back."""
    name, dot, epoch = topic.rpartition(".")
    return TopicName(name) if topic not in known and dot and epoch.isdigit() else topic


def _own_record(installation: Installation, headers: Headers) -> tuple[ProducerNumber, Serial] | None:
    header = headers.get(HEADER_NAME, b"")
    if len(header) != HEADER_BYTES:
        return None
    try:
        decoded = decode(header)
    except Refused:  # of a version to come, or nobody's: the stage stops at it, and nobody follows it
        return None
    return (decoded.producer, decoded.serial) if installation.owns(decoded.mark) else None
