"""The cluster with a set of topics, one for each cell: what faults need to strike it and to see what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from zerotail.deadline import Deadline, wait_until
from zerotail.drill.durability.cells import Cell
from zerotail.errors import Unfinished
from zerotail.kafka.log import Admin
from zerotail.kafka.numbered import PartitionState, elect_preferred, observe_partitions
from zerotail.lab.cluster import BROKERS, BrokerCluster
from zerotail.lab.power import Cut, cut_unflushed_tail

_PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster, a client for questions, and the topics with their cells."""

    cluster: BrokerCluster
    client: Admin
    topics: Mapping[str, Cell]

    def observe(self) -> list[PartitionState] | None:
        """All partitions; None while nobody answers."""
        return observe_partitions(self.client, self.topics)

    def wait_until_whole(self) -> None:
        """Return when every partition has a leader and all of its copies are in sync."""

        def in_sync() -> bool:
            seen = self.observe()
            return seen is not None and all(one.in_sync == BROKERS and one.leader is not None for one in seen)

        deadline = Deadline.after(_PATIENCE_SECONDS)
        wait_until("every copy is in sync", in_sync, deadline, every_seconds=_LOOK_SECONDS, late=Unfinished)

    def lead_by_first(self) -> None:
        """Let broker 1 lead everything; nothing may be under way, for `acks=1` would lose it even so."""

        def led() -> bool:
            seen = self.observe()
            return seen is not None and all(one.leader == BROKERS[0] for one in seen)

        deadline = Deadline.after(_PATIENCE_SECONDS)
        if not led():
            elect_preferred(self.client, [(one.topic, one.partition) for one in self.observe() or []], deadline)
            wait_until("broker 1 leads", led, deadline, every_seconds=_LOOK_SECONDS, late=Unfinished)

    def wait_until_leaders_are(self, brokers: Collection[int]) -> str:
        """Return when each partition is led by one of these."""
        return self._wait(list(self.topics), brokers)

    def wait_until_unclean_leaders_are(self, brokers: Collection[int]) -> str:
        """Return when each partition that takes any leader is led by one of these; others may wait for a better one."""
        return self._wait([topic for topic, cell in self.topics.items() if cell.unclean], brokers)

    def wait_until_in_sync_are(self, brokers: Collection[int], *, led_by: int) -> str:
        """Return when exactly these are in sync, everywhere."""
        wanted = tuple(sorted(brokers))

        def shrunk() -> bool:
            seen = self.observe()
            return seen is not None and all(one.in_sync == wanted and one.leader == led_by for one in seen)

        began = time.monotonic()
        what = f"brokers {wanted} alone are in sync"
        wait_until(what, shrunk, Deadline.after(_PATIENCE_SECONDS), every_seconds=_LOOK_SECONDS, late=Unfinished)
        return f"brokers {', '.join(map(str, wanted))} alone are in sync after {time.monotonic() - began:.1f} s"

    def cut_power(self, brokers: Collection[int]) -> Cut:
        """Take from killed brokers what they had not flushed."""
        flushed = [topic for topic, cell in self.topics.items() if cell.flushed]
        cuts = [
            cut_unflushed_tail(self.cluster.folder_of(broker) / "data", self.topics, flushed=flushed)
            for broker in brokers
        ]
        return Cut(
            sum(one.partitions for one in cuts), sum(one.records for one in cuts), sum(one.bytes for one in cuts)
        )

    def _wait(self, topics: Collection[str], brokers: Collection[int]) -> str:
        def led() -> Counter[int] | None:
            seen = [one for one in self.observe() or [] if one.topic in topics]
            done = bool(seen) and all(one.leader in brokers for one in seen)
            return Counter(one.leader for one in seen if one.leader is not None) if done else None

        began = time.monotonic()
        what = f"brokers {sorted(brokers)} lead"
        leaders = wait_until(what, led, Deadline.after(_PATIENCE_SECONDS), every_seconds=_LOOK_SECONDS, late=Unfinished)
        told = " and ".join(f"{count} by broker {broker}" for broker, count in sorted(leaders.items()))
        return f"partitions are led anew after {time.monotonic() - began:.1f} s: {told}"
