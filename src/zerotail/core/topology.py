"""Mirrors as flows: which cluster is copied into which one, under which names, and whether that is sound.

    active-passive   one flow; the target is read only when the source is lost
    active-active    two flows, one each way; only what was written locally is copied, so each event crosses once
    hub-and-spoke    a flow from every spoke into the hub, or from the hub to every spoke
    stretch          no flow: one cluster over several sites copies by itself

Three principles are checked. A cluster per site: a flow joins two different clusters. Each event is copied once
between two sites: no two flows take the same topic the same way, and what came is not sent back. Read remotely, write
locally: a flow runs at its target, because records that were read and not yet written are still safe at the source,
while records that a cut link keeps a producer from writing fill its memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from zerotail.core.identity import TopicName

Names = Literal["identity", "prefixed"]
Engine = Literal["spark", "mm2"]
Topology = Literal["active-passive", "active-active", "hub-and-spoke", "stretch"]
_INTERNAL = re.compile(r"__.*|heartbeats|mm2-.*|.*\.checkpoints\.internal|.*\.internal|zerotail-.*")
_SEPARATOR = "."
CANARY_TOPIC = "zerotail-canary"
"""Copied by every flow, so that somebody at the target can see whether records arrive."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction between two clusters."""

    mirror: str
    topology: Topology
    source: str
    target: str
    patterns: tuple[str, ...]
    names: Names
    engine: Engine
    clusters: tuple[str, ...]
    """Every cluster of the configuration: a topic whose name begins with one of them is a copy."""

    @property
    def name(self) -> str:
        """What it is called: of the two flows of an active-active mirror, by its direction."""
        return f"{self.mirror}.{self.source}-{self.target}"

    @property
    def local_only(self) -> bool:
        """Whether records that any mirror has brought are left where they are."""
        return self.topology == "active-active"

    def takes(self, topic: str) -> bool:
        """Whether a topic of the source is copied: it fits a pattern, and is neither bookkeeping nor a copy itself."""
        if topic == CANARY_TOPIC:
            return True
        if _INTERNAL.fullmatch(topic) or not any(re.fullmatch(pattern, topic) for pattern in self.patterns):
            return False
        return self.names == "identity" or not topic.startswith(tuple(f"{name}{_SEPARATOR}" for name in self.clusters))

    def target_topic(self, topic: str) -> TopicName:
        """Its name at the target."""
        return TopicName(topic if self.names == "identity" else f"{self.source}{_SEPARATOR}{topic}")

    def source_topic(self, target_topic: str) -> TopicName | None:
        """The name at the source of a topic at the target; None when this flow did not make it."""
        prefix = "" if self.names == "identity" else f"{self.source}{_SEPARATOR}"
        name = target_topic.removeprefix(prefix)
        return TopicName(name) if target_topic.startswith(prefix) and self.takes(name) else None


def plan_flows(
    mirror: str,
    topology: Topology,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    patterns: Iterable[str],
    names: Names,
    engine: Engine,
    clusters: Iterable[str],
) -> tuple[Flow, ...]:
    """The flows of one mirror."""
    pairs = [(source, target) for source in sources for target in targets]
    if topology == "active-active":
        pairs += [(target, source) for source, target in pairs]
    said = (tuple(patterns), names, engine, tuple(clusters))
    return tuple(Flow(mirror, topology, source, target, *said) for source, target in pairs)


@dataclass(frozen=True, slots=True)
class Principle:
    """One principle, and what speaks against it."""

    name: str
    objections: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing does."""
        return not self.objections


def check_principles(
    flows: Sequence[Flow],
    brokers: Mapping[str, frozenset[str]],
    topics: Mapping[str, frozenset[str]],
    run_at: str | None = None,
) -> tuple[Principle, ...]:
    """The three principles for all flows together.

    `brokers` are the addresses of each cluster, `topics` the names at each cluster as far as they are known, and
    `run_at` is where the mirror is to run, if that is said.
    """
    return (
        Principle("a cluster per site", tuple(_shared_clusters(flows, brokers))),
        Principle("each event is copied once between two sites", tuple(_copied_twice(flows, topics))),
        Principle("the mirror runs at the target and reads remotely", tuple(_written_remotely(flows, run_at))),
    )


def _shared_clusters(flows: Sequence[Flow], brokers: Mapping[str, frozenset[str]]) -> Iterable[str]:
    for flow in flows:
        shared = sorted(brokers.get(flow.source, frozenset()) & brokers.get(flow.target, frozenset()))
        if flow.source == flow.target or shared:
            yield f"{flow.source} and {flow.target} share {', '.join(shared) or 'everything'}: that is one cluster"


def _copied_twice(flows: Sequence[Flow], topics: Mapping[str, frozenset[str]]) -> Iterable[str]:
    for one, other in combinations(flows, 2):
        same_way = (one.source, one.target) == (other.source, other.target)
        back = (one.source, one.target) == (other.target, other.source)
        unmarked = "mm2" in (one.engine, other.engine) and "identity" in (one.names, other.names)
        both = _taken_by_both(one, other, topics) if same_way or (back and unmarked) else ""
        if both and same_way:
            yield f"{one.mirror} and {other.mirror} both copy {both} from {one.source} to {one.target}"
        elif both:
            yield f"{both} would run in a circle between {one.source} and {one.target}: MirrorMaker 2 marks no origin"


def _taken_by_both(one: Flow, other: Flow, topics: Mapping[str, frozenset[str]]) -> str:
    """A topic that two flows take, or a pattern that both have; empty when none is known."""
    known = topics.get(one.source, frozenset()) | topics.get(other.source, frozenset())
    names = sorted(name for name in known if one.takes(name) and other.takes(name))
    patterns = sorted(set(one.patterns) & set(other.patterns))
    return ", ".join((names or patterns)[:3])


def _written_remotely(flows: Sequence[Flow], run_at: str | None) -> Iterable[str]:
    for flow in flows:
        if run_at is not None and run_at != flow.target:
            yield f"{flow.source} → {flow.target} would run at {run_at} and write remotely; run it at {flow.target}"
