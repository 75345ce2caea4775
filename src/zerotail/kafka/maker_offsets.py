"""How far MirrorMaker 2 is, from the topic in which Kafka Connect keeps its offsets at the target."""

from __future__ import annotations

import json

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.copy import READING
from zerotail.kafka.places import Partition

_ANSWER_SECONDS = 10.0
_CONNECTOR = "MirrorSourceConnector"


def offsets_topic(source: str) -> str:
    """The topic at the target where MirrorMaker 2 keeps how far it has read the source."""
    return f"mm2-offsets.{source}.internal"


def read_maker_places(target: Cluster, source: str) -> dict[Partition, Offset]:
    """The next offset of every partition that MirrorMaker 2 has copied from; empty when it has not run yet."""
    topic = offsets_topic(source)
    consumer = Consumer({**READING, **target.for_client()})
    try:
        partitions = consumer.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].partitions
        if not partitions:
            return {}
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        return _read(consumer, len(partitions))
    except KafkaException as error:
        raise Unavailable(f"{topic} cannot be read: {error.args[0].str()}.", code="ZT553") from error
    finally:
        consumer.close()


def _read(consumer: Consumer, partitions: int) -> dict[Partition, Offset]:
    found: dict[Partition, Offset] = {}
    at_end: set[int | None] = set()
    deadline = Deadline.after(_ANSWER_SECONDS)
    while len(at_end) < partitions:
        if deadline.passed:
            raise Unavailable("the offsets of MirrorMaker 2 cannot be read in time.", code="ZT553")
        for message in consumer.consume(1000, 0.1):
            error = message.error()
            if error is None:
                _take(found, message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
            else:
                raise KafkaException(error)
    return found


def _take(found: dict[Partition, Offset], key: bytes | None, value: bytes | None) -> None:
    try:
        connector, where = json.loads(key or b"null")
        where, offset = (where, json.loads(value)["offset"]) if value else (where, None)
    except (ValueError, TypeError, KeyError):
        return
    if connector != _CONNECTOR:
        return
    partition = (TopicName(where["topic"]), PartitionNumber(where["partition"]))
    if offset is None:
        found.pop(partition, None)
    else:
        found[partition] = Offset(offset + 1)
