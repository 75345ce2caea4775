"""Mirrors as flows, and the principles that they are held to."""

from __future__ import annotations

import pytest

from zerotail.core.topology import Engine, Flow, Names, Topology, check_principles, plan_flows

pytestmark = pytest.mark.fast

BROKERS = {name: frozenset({f"{name}:9092"}) for name in ("east", "west", "hub")}


def flows(
    topology: Topology,
    sources: str,
    targets: str,
    *patterns: str,
    names: Names = "identity",
    engine: Engine = "spark",
    mirror: str = "m",
) -> tuple[Flow, ...]:
    return plan_flows(
        mirror,
        topology,
        sources.split(),
        targets.split(),
        patterns=patterns or ("audit-.*",),
        names=names,
        engine=engine,
        clusters=BROKERS,
    )


def ways(found: tuple[Flow, ...]) -> list[str]:
    return [f"{flow.source}>{flow.target}" for flow in found]


def test_each_topology_has_its_flows() -> None:
    assert ways(flows("active-passive", "east", "west")) == ["east>west"]
    assert ways(flows("active-active", "east", "west")) == ["east>west", "west>east"]
    assert ways(flows("hub-and-spoke", "east west", "hub")) == ["east>hub", "west>hub"]
    assert ways(flows("hub-and-spoke", "hub", "east west")) == ["hub>east", "hub>west"]
    assert flows("stretch", "hub", "") == ()


@pytest.mark.parametrize(
    ("topic", "names", "taken"),
    [
        ("audit-1", "identity", True),
        ("my-audit-1", "identity", False),
        ("audit-1", "prefixed", True),
        ("east.audit-1", "prefixed", False),
        ("audit-1.internal", "identity", False),
    ],
)
def test_a_topic_is_taken_by_its_whole_name_and_never_a_copy_of_a_copy(topic: str, names: Names, taken: bool) -> None:
    (flow,) = flows("active-passive", "east", "west", "audit-.*", "east.*", names=names)
    assert flow.takes(topic) is taken


@pytest.mark.parametrize("topic", ["__consumer_offsets", "heartbeats", "mm2-offsets.east.internal", "zerotail-other"])
def test_bookkeeping_is_nobodys_business(topic: str) -> None:
    (flow,) = flows("active-passive", "east", "west", ".*")
    assert not flow.takes(topic)


def test_the_canary_is_taken_by_every_flow() -> None:
    (flow,) = flows("active-passive", "east", "west", "audit")
    assert flow.takes("zerotail-canary")


def test_names_are_kept_or_carry_the_source() -> None:
    (same,) = flows("active-passive", "east", "west")
    (prefixed,) = flows("active-passive", "east", "west", names="prefixed")
    assert same.target_topic("audit-1") == "audit-1"
    assert prefixed.target_topic("audit-1") == "east.audit-1"
    assert prefixed.source_topic("east.audit-1") == "audit-1"
    assert prefixed.source_topic("audit-1") is None
    assert same.source_topic("payments") is None


def objections(*found: Flow, topics: dict[str, frozenset[str]] | None = None, run_at: str | None = None) -> list[str]:
    return [one for principle in check_principles(found, BROKERS, topics or {}, run_at) for one in principle.objections]


def test_sound_mirrors_have_nothing_said_against_them() -> None:
    for topology in ("active-passive", "active-active"):
        assert objections(*flows(topology, "east", "west")) == []
    assert objections(*flows("hub-and-spoke", "east west", "hub"), run_at="hub") == []


def test_two_clusters_that_share_a_broker_are_one() -> None:
    (flow,) = flows("active-passive", "east", "west")
    (first, *_) = check_principles([flow], dict.fromkeys(BROKERS, frozenset({"same:9092"})), {})
    assert not first.holds


def test_a_topic_that_two_mirrors_copy_the_same_way_is_named() -> None:
    one = flows("active-passive", "east", "west", "audit-.*", mirror="one")
    other = flows("active-passive", "east", "west", ".*-1", mirror="other")
    assert objections(*one, *other) == []
    (said,) = objections(*one, *other, topics={"east": frozenset({"audit-1", "audit-2", "pay-1"})})
    assert said == "one and other both copy audit-1 from east to west"


def test_mirrormaker_both_ways_with_kept_names_is_a_circle() -> None:
    there = flows("active-passive", "east", "west", "a", engine="mm2", mirror="there")
    back = flows("active-passive", "west", "east", "a", engine="mm2", mirror="back")
    (said,) = objections(*there, *back)
    assert "circle" in said
    spark = [flows("active-passive", *ends, "a", mirror=ends[0]) for ends in (("east", "west"), ("west", "east"))]
    assert objections(*spark[0], *spark[1]) == []


def test_a_mirror_that_would_write_remotely_is_told_where_to_run() -> None:
    (said,) = objections(*flows("active-passive", "east", "west"), run_at="east")
    assert said.endswith("run it at west")
