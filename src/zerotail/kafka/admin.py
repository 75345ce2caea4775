"""Questions to a cluster as a whole."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable


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


def count_brokers(bootstrap: str, settings: Mapping[str, str], deadline: Deadline) -> int:
    """How many brokers the cluster knows as alive; 0 when nobody listens, `Unavailable` when nobody answers."""
    # The client takes refusals for silence and would try until the deadline.
    if all(_refuses(address) for address in bootstrap.split(",")):
        return 0
    try:
        client = AdminClient({"log_level": 0, **settings, "bootstrap.servers": bootstrap})
        return len(client.list_topics(timeout=max(0.1, deadline.seconds_left)).brokers)
    except KafkaException as error:
        raise Unavailable(f"no broker answers: {error.args[0].str()}", code="ZT502") from error


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


def _refuses(address: str) -> bool:
    """Whether the machine says at once that nobody listens there; silence is no such word."""
    host, _, port = address.strip().rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=0.2).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
