"""Plain producing of records that are at hand: the rate that refills are measured against, and how their logs are made.

Idempotent, acknowledged by all replicas, no transaction, nothing checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.errors import Unfinished
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.producer import SETTINGS, queue_records

_FLUSH_SECONDS = 120.0


def write_plainly(
    cluster: Cluster, topic: TopicName, partition: PartitionNumber, records: Iterable[tuple[bytes, bytes]]
) -> None:
    """Append values, each with its header, in order; returns when all of them are acknowledged."""
    failed: list[KafkaError] = []

    def note(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    settings: dict[str, Any] = {
        **SETTINGS,
        **cluster.for_client(),
        "linger.ms": 20,
        "delivery.timeout.ms": int(_FLUSH_SECONDS * 1000),
        "on_delivery": note,
    }
    client = Producer(settings)
    queue_records(client, topic, partition, records)
    if client.flush(_FLUSH_SECONDS) or failed:
        reason = failed[0].str() if failed else "no answer in time"
        raise Unfinished(f"topic {topic} could not be written: {reason}", code="ZT840")
