"""A place that is not in the log any more ends a service: going on would skip records that nobody has worked on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Event, Timer

import pytest
from confluent_kafka import TopicPartition

from support.consumers import PATIENCE_SECONDS, SESSION_MS, Consumers
from zerotail.consume import consume
from zerotail.errors import Refused
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.servers

GONE = 1
"""The partition whose records are deleted."""


@pytest.fixture
def group(lab: Layout) -> Iterator[Consumers]:
    consumers = Consumers(lab, f"expired-{os.getpid()}")
    yield consumers
    consumers.end()


def test_records_that_are_gone_before_anybody_worked_on_them_end_the_service(group: Consumers) -> None:
    # Under a fixed name the member that comes back has its partitions at once.
    named = {"group.instance.id": "one", "session.timeout.ms": str(SESSION_MS)}
    group.send(40)
    member = group.start(**named)
    group.wait_for_results(40)
    group.kill(member)
    group.send(40)
    client = admin_client(Cluster(group.bootstrap))
    for answer in client.delete_records([TopicPartition(group.name, GONE, 15)]).values():
        answer.result(PATIENCE_SECONDS)
    worked: list[int] = []
    stop = Event()
    patience = Timer(PATIENCE_SECONDS, stop.set)
    patience.start()
    try:
        with pytest.raises(Refused, match=rf"the place in {group.name}/{GONE} is not in the log any more") as ended:
            consume(
                group.bootstrap,
                group.name,
                [group.name],
                group.dsn,
                lambda record, _: worked.append(record.partition.number) if record.partition.number == GONE else None,
                settings=named,
                stop=stop,
            )
    finally:
        patience.cancel()
    assert ended.value.code == "ZT921"
    assert worked == []
