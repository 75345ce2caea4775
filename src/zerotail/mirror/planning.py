"""What the mirrors of a configuration would do: the flows, the topics that they take, and the principles.

The clusters are asked for their topics; one that does not answer is left out and named, for a plan is also wanted
when a site is down. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from zerotail.config import Configuration, Mirror
from zerotail.core.topology import Flow, Principle, check_principles
from zerotail.errors import Unavailable
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.mirror.flows import brokers_of, clusters_of, flows_of, used_clusters
from zerotail.mirror.topics import TopicFacts, plan_topic

_MEANING = {
    "active-passive": "The target is for reading when the source is lost; nobody else writes to its copies.",
    "active-active": (
        "Both sides write and read. A reader sees the records of both, each side's in its own order; how the two "
        "orders interleave differs from side to side. Two updates of one key, made on both sides before they met, "
        "stand in different order here and there: let the reader decide by timestamp and origin (header zt-from, or "
        "the prefix of the topic's name), or let each key be written at one side only."
    ),
    "hub-and-spoke": "The spokes know nothing of each other; the hub reads all of them.",
    "stretch": (
        "One cluster over several sites: no mirror is needed. Each write must be at two sites before it is "
        "acknowledged: racks name the sites, acks=all, and min.insync.replicas is more than the copies of any one site."
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A topic that a flow takes, and what would be done at the target."""

    source: str
    target: str
    partitions: int
    todo: str
    """Empty when the target is ready for it."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """One flow with its topics; None when a cluster did not answer."""

    flow: Flow
    topics: tuple[PlannedTopic, ...] | None
    runs_at: str


@dataclass(frozen=True, slots=True)
class PlannedMirror:
    """One mirror."""

    name: str
    topology: str
    engine: str
    meaning: str
    source: tuple[str, ...]
    patterns: tuple[str, ...]
    flows: tuple[PlannedFlow, ...]


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """All mirrors, and the principles over all of them."""

    mirrors: tuple[PlannedMirror, ...]
    principles: tuple[Principle, ...]
    silent: Mapping[str, str]
    """The clusters that did not answer, and why."""

    @property
    def sound(self) -> bool:
        """Whether every principle holds."""
        return all(principle.holds for principle in self.principles)


def observe_plan(configuration: Configuration, mirrors: Sequence[Mirror], run_at: str | None = None) -> MirrorPlan:
    """Look at the clusters that the mirrors join, and plan."""
    flows = [flow for mirror in mirrors for flow in flows_of(configuration, mirror)]
    all_flows = [flow for mirror in configuration.mirrors for flow in flows_of(configuration, mirror)]
    seen = observe_clusters(clusters_of(configuration), used_clusters(all_flows))
    topics = {name: frozenset(one.topics) for name, one in seen.items() if isinstance(one, _Seen)}
    mine = {flow.mirror for flow in flows}
    principles = check_principles(all_flows, brokers_of(configuration), topics)
    remote = check_principles(flows, brokers_of(configuration), topics, run_at)[-1]
    return MirrorPlan(
        tuple(_planned(mirror, flows_of(configuration, mirror), seen) for mirror in mirrors),
        (*(_about(principle, mine, all_flows) for principle in principles[:-1]), remote),
        {name: one for name, one in seen.items() if isinstance(one, str)},
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    topics: Mapping[str, TopicFacts]
    brokers: int


def observe_clusters(clusters: Mapping[str, Cluster], names: Sequence[str]) -> dict[str, _Seen | str]:
    """The topics of each cluster, or why they are not known."""

    def look(name: str) -> _Seen | str:
        try:
            catalogue = Catalogue(clusters[name], name)
            return _Seen(catalogue.facts(lambda topic: not topic.startswith("__")), catalogue.partition_counts()[1])
        except Unavailable as error:
            return error.message

    with ThreadPoolExecutor(max(1, len(names))) as pool:
        return dict(zip(names, pool.map(look, names), strict=True))


def _planned(mirror: Mirror, flows: Sequence[Flow], seen: Mapping[str, _Seen | str]) -> PlannedMirror:
    return PlannedMirror(
        mirror.called,
        mirror.topology,
        mirror.engine,
        _MEANING[mirror.topology],
        mirror.source,
        mirror.topics,
        tuple(PlannedFlow(flow, _topics(flow, seen), flow.target) for flow in flows),
    )


def _topics(flow: Flow, seen: Mapping[str, _Seen | str]) -> tuple[PlannedTopic, ...] | None:
    source, target = seen[flow.source], seen[flow.target]
    if isinstance(source, str) or isinstance(target, str):
        return None
    planned = []
    for name, facts in sorted(source.topics.items()):
        if flow.takes(name):
            there = flow.target_topic(name)
            plan = plan_topic(facts, there, target.topics.get(there), target.brokers)
            todo = "make it" if plan.make else ""
            todo = todo or (f"grow to {plan.partitions} partitions" if plan.partitions else "")
            todo = todo or (f"set {', '.join(plan.settings)}" if plan.settings else "")
            planned.append(PlannedTopic(name, plan.topic, facts.partitions, todo, plan.notes))
    return tuple(planned)


def _about(principle: Principle, mirrors: set[str], flows: Sequence[Flow]) -> Principle:
    """What concerns the mirrors that were asked for: all of it, when all were."""
    if mirrors == {flow.mirror for flow in flows}:
        return principle
    return replace(principle, objections=tuple(one for one in principle.objections if any(m in one for m in mirrors)))
