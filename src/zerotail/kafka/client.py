"""Which Kafka client this is."""

from __future__ import annotations

import confluent_kafka


def librdkafka_version() -> str:
    """Of the library below the Python package."""
    return str(confluent_kafka.libversion()[0])
