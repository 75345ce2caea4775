"""`mirror verify`: which topics are compared, up to where, and the job that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.topology import Flow
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.maker_offsets import read_maker_places
from zerotail.kafka.places import Partition, Places
from zerotail.mirror.comparison import Compared

Bounds = Mapping[int, tuple[Offset, Offset]]
"""Of each partition: its first offset, and the one behind its last."""
Compare = Callable[[str, Bounds, str, Bounds], Compared]
"""Compares a topic of the source with one of the target, each within bounds: the Spark job."""


def verify_flow(flow: Flow, source: Cluster, target: Cluster, compare: Compare) -> tuple[Compared, ...]:
    """Compare every topic that a flow copies, up to where it has been copied; a topic not yet begun is left out."""
    counts, _ = Catalogue(source, flow.source).partition_counts()
    there, _ = Catalogue(target, flow.target).partition_counts()
    places = _places(flow, target)
    found = []
    for topic in sorted(name for name in counts if flow.takes(name) and flow.target_topic(name) in there):
        own = _partitions(topic, counts[topic])
        copies = _partitions(flow.target_topic(topic), there[flow.target_topic(topic)])
        source_bounds = Places(source, flow.source).bounds(own)
        reached = {
            int(one[1]): (first, min(behind, places.get(one, first))) for one, (first, behind) in source_bounds.items()
        }
        target_bounds = {int(one[1]): both for one, both in Places(target, flow.target).bounds(copies).items()}
        found.append(compare(topic, reached, flow.target_topic(topic), target_bounds))
    return tuple(found)


def _places(flow: Flow, target: Cluster) -> dict[Partition, Offset]:
    """By the names of the source."""
    if flow.engine == "mm2":
        return read_maker_places(target, flow.source)
    read = Places(target, flow.target).read(flow)
    return {
        (name, partition): place.next_offset
        for (topic, partition), place in read.items()
        if (name := flow.source_topic(topic)) is not None
    }


def _partitions(topic: str, count: int) -> list[Partition]:
    return [(TopicName(topic), PartitionNumber(number)) for number in range(count)]
