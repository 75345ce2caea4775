"""Orders to copy between the two sites of a lab, without Spark around them."""

from __future__ import annotations

from dataclasses import replace

from zerotail.core.copying import Kind
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.core.topology import Flow, Names, Topology, plan_flows
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.copy import PartitionCopier
from zerotail.kafka.copy_order import Order, Outcome
from zerotail.kafka.places import Places, next_run
from zerotail.mirror.topics import plan_topic


def flow_of(
    source: str = "east", target: str = "west", topology: Topology = "active-passive", names: Names = "prefixed"
) -> Flow:
    """A flow from one site to the other."""
    return plan_flows(
        "copy",
        topology,
        [source],
        [target],
        patterns=[".*"],
        names=names,
        engine="spark",
        clusters=["east", "west"],
    )[0]


def orders(
    source: str,
    target: str,
    topic: str,
    partitions: int,
    token: str,
    *,
    flow: Flow | None = None,
    accepted: frozenset[Kind] = frozenset(),
    most: int = 1000,
) -> list[Order]:
    """As a new start of a mirror would give them: under a higher generation than any before."""
    flow = flow or flow_of()
    here, there = Cluster(source), Cluster(target)
    catalogue = Catalogue(there, flow.target)
    facts = Catalogue(here, flow.source).facts(lambda name: name == topic)[topic]
    copy = flow.target_topic(topic)
    plan = plan_topic(facts, copy, catalogue.facts(lambda name: name == copy).get(copy), 1)
    if not plan.is_ready:
        catalogue.carry_out(plan)
    run = next_run(Places(there, flow.target).read(flow).values(), token)
    first = Order(
        flow, here, there, TopicName(topic), facts.topic_id, PartitionNumber(0), run, accepted=accepted, most=most
    )
    return [replace(first, partition=PartitionNumber(number)) for number in range(partitions)]


def copy_all(order: Order) -> Outcome:
    """Copy to the end; the last outcome, with everything that was copied."""
    copier = PartitionCopier(order)
    end = Places(order.source, order.flow.source).ends([(order.topic, order.partition)])[order.topic, order.partition]
    copied = left_out = 0
    for _ in range(20):
        outcome = copier.work(end, 5.0)
        copied, left_out = copied + outcome.copied, left_out + outcome.left_out
        if outcome.state in ("stopped", "fenced") or outcome.next_offset >= end:
            break
    copier.close()
    return replace(outcome, copied=copied, left_out=left_out)
