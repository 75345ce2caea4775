"""The order to copy a partition, and what became of it: both travel between the driver and its workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from zerotail.core.copying import Kind, Run
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.core.topology import Flow
from zerotail.kafka.cluster import Cluster

State = Literal["copying", "stopped", "fenced", "waiting"]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be copied from where to where, and in whose name; it can travel to executors and be a key."""

    flow: Flow
    source: Cluster
    target: Cluster
    topic: TopicName
    topic_id: str
    partition: PartitionNumber
    run: Run
    accepted: frozenset[Kind] = frozenset()
    most: int = 250_000
    """The most records of one transaction."""

    @property
    def target_topic(self) -> TopicName:
        """The topic's name at the target."""
        return self.flow.target_topic(self.topic)

    @property
    def group(self) -> str:
        """The consumer group of the target under which the place is kept."""
        return place_group(self.flow)

    @property
    def fence(self) -> str:
        """The transactional id of the partition."""
        return f"zerotail-mirror.{self.flow.name}.{self.topic}.{self.partition}"


def place_group(flow: Flow) -> str:
    """The consumer group of the target under which a flow's places are kept; nobody joins it."""
    return f"zerotail-mirror.{flow.name}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one partition in one pass."""

    state: State
    note: str = ""
    copied: int = 0
    left_out: int = 0
    """Records that came from the target, or in an active-active mirror from anywhere else."""
    bytes: int = 0
    next_offset: int = -1
    transactions: int = 0
    reading_seconds: float = 0.0
    sending_seconds: float = 0.0
    kind: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
