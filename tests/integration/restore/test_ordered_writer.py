"""Writing in order: what was committed can be read when `commit` has returned."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import pytest
from confluent_kafka import Producer

from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.kafka.ordered_writer import OrderedWriter
from zerotail.kafka.partition_log import PartitionLog
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.servers

FIRST = PartitionNumber(0)
TOPIC = TopicName("written-in-order")


@pytest.fixture
def stranger(lab: Layout) -> Iterator[Producer]:
    """Somebody with a transaction that is open in front of what we write."""
    cluster = Cluster(lab.bootstrap("west"))
    ensure_topic(admin_client(cluster), TOPIC, TopicSettings(1, 1))
    client = Producer({"bootstrap.servers": lab.bootstrap("west"), "transactional.id": "stranger-in-order"})
    client.init_transactions(10)
    client.begin_transaction()
    client.produce(TOPIC, value=b"foreign", partition=FIRST)
    assert client.flush(10) == 0
    yield client
    client.abort_transaction(10)


def test_a_commit_returns_when_what_it_wrote_can_be_read(lab: Layout, stranger: Producer) -> None:
    cluster = Cluster(lab.bootstrap("west"))
    with closing(OrderedWriter(cluster, TOPIC, FIRST)) as writer, ThreadPoolExecutor(1) as pool:
        writer.write([b"1", b"2"], [b"", b""])
        committing = pool.submit(writer.commit)
        assert not wait([committing], timeout=2).done, "readers see nothing of it yet"
        stranger.commit_transaction(10)
        committing.result(30)
        assert writer.written == 2
        read = [
            bytes(message.value() or b"")
            for polled in PartitionLog(cluster, TOPIC, FIRST).poll(None)
            for message in polled
        ]
    assert read == [b"foreign", b"1", b"2"]
    stranger.begin_transaction()  # for the fixture to take back
