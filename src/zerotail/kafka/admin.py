"""Questions to a cluster as a whole."""

from __future__ import annotations

import socket

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from zerotail.deadline import Deadline, wait_until


def live_brokers(bootstrap: str, *, timeout_seconds: float = 2.0) -> tuple[int, ...]:
    """The ids of the brokers that the cluster knows as alive; empty when nobody answers."""
    if not somebody_listens(bootstrap):
        return ()
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 2000})
    try:
        metadata = client.list_topics(timeout=timeout_seconds)
    except KafkaException:
        return ()
    return tuple(sorted(metadata.brokers))


def somebody_listens(bootstrap: str) -> bool:
    """Whether one of the addresses accepts connections: librdkafka is slow to find out, and prints a line each time."""
    return any(_accepts(address) for address in bootstrap.split(","))


def wait_until_brokers_live(bootstrap: str, count: int, deadline: Deadline) -> None:
    """Return when `count` brokers are alive."""
    wait_until(
        f"{count} Kafka brokers at {bootstrap} are alive",
        lambda: len(live_brokers(bootstrap)) >= count,
        deadline,
        every_seconds=0.1,
    )


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=0.5).close()
    except OSError:
        return False
    return True
