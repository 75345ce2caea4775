"""MirrorMaker 2 from the configuration: properties and the Strimzi resource, set so that nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from zerotail.core.topology import Flow, Names, Topology, plan_flows
from zerotail.mirror.maker import IDENTITY, PREFIXED, MakerSettings, plan_properties, plan_resource, render_properties

pytestmark = pytest.mark.fast

CLUSTERS = {name: {"bootstrap.servers": f"{name}:9092"} for name in ("east", "west", "hub")}


def flows(topology: Topology, sources: str, target: str, names: Names = "identity") -> tuple[Flow, ...]:
    return plan_flows(
        "m",
        topology,
        sources.split(),
        [target],
        patterns=["audit-.*", "trades"],
        names=names,
        engine="mm2",
        clusters=CLUSTERS,
    )


def test_what_guards_against_loss_is_set() -> None:
    said = plan_properties(flows("active-passive", "east", "west"), CLUSTERS, MakerSettings(copies=3))
    assert said["west.producer.acks"] == "all"
    assert said["west.producer.enable.idempotence"] == "true"
    assert said["west.exactly.once.source.support"] == "enabled"
    assert said["east.consumer.isolation.level"] == "read_committed"
    assert said["east->west.replication.factor"] == "3"
    assert said["offset.storage.replication.factor"] == "3"
    assert said["east->west.sync.topic.configs.enabled"] == "true"


def test_only_the_flows_that_were_asked_for_run() -> None:
    there = flows("active-active", "east", "west", "prefixed")[:1]
    said = plan_properties(there, CLUSTERS, MakerSettings())
    assert said["east->west.enabled"] == "true"
    assert said["west->east.enabled"] == "false"
    assert said["east->west.topics"] == "audit-.*, trades, zerotail-canary"
    assert said["east->west.replication.policy.class"] == PREFIXED


def test_a_hub_has_a_flow_from_each_spoke() -> None:
    said = plan_properties(flows("hub-and-spoke", "east west", "hub"), CLUSTERS, MakerSettings())
    assert said["clusters"] == "east, hub, west"
    assert said["east->hub.enabled"] == said["west->hub.enabled"] == "true"
    assert said["east->west.enabled"] == "false"
    assert said["west->hub.replication.policy.class"] == IDENTITY


def test_further_properties_win() -> None:
    said = plan_properties(
        flows("active-passive", "east", "west"), CLUSTERS, MakerSettings(more={"west.producer.batch.size": "100"})
    )
    assert said["west.producer.batch.size"] == "100"


def test_a_backslash_and_a_line_break_survive_the_properties_file() -> None:
    assert "a = x\\\\d+\\ny" in render_properties({"a": "x\\d+\ny"})


def test_the_resource_says_the_same_to_strimzi() -> None:
    resource: Any = plan_resource("m", flows("active-passive", "east", "west"), CLUSTERS, MakerSettings(copies=2))
    assert resource["kind"] == "KafkaMirrorMaker2"
    spec = resource["spec"]
    assert spec["connectCluster"] == "west"
    (mirror,) = spec["mirrors"]
    assert mirror["topicsPattern"] == "audit-.*|trades|zerotail-canary"
    assert mirror["sourceConnector"]["config"]["replication.factor"] == "2"
    target = next(one for one in spec["clusters"] if one["alias"] == "west")
    assert target["config"]["exactly.once.source.support"] == "enabled"
    assert target["config"]["producer.acks"] == "all"
    assert "bootstrap.servers" not in target["config"]
