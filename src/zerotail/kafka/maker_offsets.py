"""How far MirrorMaker 2 is, from the topic in which Kafka Connect keeps its offsets at the target."""

from __future__ import annotations

import json

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.deadline import Deadline
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.places import Partition
from zerotail.kafka.reading import partition_numbers, read_whole

_ANSWER_SECONDS = 10.0
_CONNECTOR = "MirrorSourceConnector"


def offsets_topic(source: str) -> str:
    """The topic at the target where MirrorMaker 2 keeps how far it has read the source."""
    return f"mm2-offsets.{source}.internal"


def read_maker_places(target: Cluster, source: str) -> dict[Partition, Offset]:
    """The next offset of every partition that MirrorMaker 2 has copied from; empty when it has not run yet."""
    topic = offsets_topic(source)
    partitions = partition_numbers(target, topic)
    found: dict[Partition, Offset] = {}
    for message in read_whole(target, topic, partitions, Deadline.after(_ANSWER_SECONDS)) if partitions else ():
        _take(found, message.key(), message.value())
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
