"""What can happen to a topic behind everybody's back."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicCollection, TopicPartition

from support.running import PATIENCE_SECONDS
from zerotail.core.identity import TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import Admin, TopicSettings, admin_client, create_topic, log_bounds
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout, parts_of

_ANSWER_SECONDS = 20.0


@dataclass(frozen=True)
class Kept:
    """A record that was read and can be written again."""

    partition: int
    value: bytes | None
    headers: Sequence[tuple[str, str | bytes | None]]


def wipe_kafka(layout: Layout, site: str = "east") -> None:
    """Kill a site's brokers, remove all they have, and start them empty, as another cluster."""
    cluster = f"{site}.kafka"
    assert kill_target(layout, cluster).bit
    for part in parts_of(layout, cluster):
        shutil.rmtree(layout.folder_of(part) / "data")
    assert start_target(layout, cluster).bit


@dataclass(frozen=True)
class TopicAtSite:
    """One topic of a site's cluster, seen from beside the product."""

    layout: Layout
    name: str
    partitions: int
    site: str = "east"

    @property
    def client(self) -> Admin:
        return admin_client(Cluster(self.layout.bootstrap(self.site)))

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Where the log of each partition begins, and the offset behind its end."""
        found = log_bounds(self.client, TopicName(self.name), range(self.partitions))
        return {partition: (int(first), int(behind)) for partition, (first, behind) in found.items()}

    def count(self) -> int:
        """Records that were ever written to this log."""
        return sum(behind for _, behind in self.bounds().values())

    def read(self) -> list[Kept]:
        """Everything that lies in it now."""
        consumer = Consumer(
            {"bootstrap.servers": self.layout.bootstrap(self.site), "group.id": "beside", "log_level": 0}
        )
        try:
            return [one for partition, ends in self.bounds().items() for one in _read(consumer, self, partition, ends)]
        finally:
            consumer.close()

    def write(self, records: Iterable[Kept]) -> None:
        """Append records as they are."""
        failed: list[KafkaError] = []

        def note(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        producer = Producer({"bootstrap.servers": self.layout.bootstrap(self.site), "log_level": 0})
        for one in records:
            producer.produce(self.name, one.value, None, one.partition, headers=list(one.headers), on_delivery=note)
        assert producer.flush(_ANSWER_SECONDS) == 0
        assert not failed, failed

    def make_anew(self, records: Iterable[Kept] = ()) -> None:
        """Delete the topic, create it again, and write these records to it."""
        client = self.client
        (gone,) = client.delete_topics([self.name], request_timeout=_ANSWER_SECONDS).values()
        gone.result()
        wait_until("the topic is gone", lambda: not self._exists(client), Deadline.after(PATIENCE_SECONDS))
        # Whoever is faster makes it: here, or a process of the site that needs it.
        create_topic(client, TopicName(self.name), TopicSettings(self.partitions, 1))
        self.write(records)

    def forget_everything(self) -> None:
        """Let retention remove every record there is."""
        ends = [TopicPartition(self.name, partition, behind) for partition, (_, behind) in self.bounds().items()]
        client = self.client
        for done in client.delete_records(ends, request_timeout=_ANSWER_SECONDS).values():
            done.result()
        assert all(first == behind for first, behind in self.bounds().values())

    def _exists(self, client: Admin) -> bool:
        try:
            return bool(client.describe_topics(TopicCollection([self.name]))[self.name].result())
        except KafkaException:
            return False


def _read(consumer: Consumer, topic: TopicAtSite, partition: int, ends: tuple[int, int]) -> list[Kept]:
    first, behind = ends
    consumer.assign([TopicPartition(topic.name, partition, first)])
    found: list[Kept] = []
    while len(found) < behind - first:
        messages = consumer.consume(min(10_000, behind - first - len(found)), _ANSWER_SECONDS)
        assert messages, f"partition {partition} of {topic.name} gives nothing more"
        for message in messages:
            assert message.error() is None, message.error()
            found.append(Kept(partition, message.value(), _headers_of(message)))
    return found


def _headers_of(message: Message) -> list[tuple[str, str | bytes | None]]:
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else list(headers)
