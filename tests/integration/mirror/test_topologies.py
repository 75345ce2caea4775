"""Topologies, each with one engine, under a load, judged by `mirror verify`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from support.command import call
from support.mirrors import configuration, make_topic, partition_count, read, running_mirror, write
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.clusters import temporary_clusters
from zerotail.lab.fault import start_target
from zerotail.lab.layout import Layout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

PARTITIONS = 2
RECORDS = 3000
"""Of each source, in each partition."""


@dataclass(frozen=True)
class Case:
    """A mirror, who writes, and how many records each target's topic has in the end."""

    name: str
    mirror: str
    writers: tuple[str, ...]
    expected: dict[tuple[str, str], int]


CASES = (
    Case(
        "merged",
        "topology: hub-and-spoke, source: [east, west], target: outside, topic_names: identity",
        ("east", "west"),
        {("outside", "merged"): 2 * RECORDS},
    ),
    Case(
        "apart",
        "engine: mm2, topology: hub-and-spoke, source: [east, west], target: outside, topic_names: prefixed",
        ("east", "west"),
        {("outside", "east.apart"): RECORDS, ("outside", "west.apart"): RECORDS},
    ),
    Case(
        "passive",
        "engine: mm2, topology: active-passive, source: east, target: west, topic_names: identity",
        ("east",),
        {("west", "passive"): RECORDS},
    ),
    Case(
        "active",
        "engine: mm2, topology: active-active, source: east, target: west, topic_names: prefixed",
        ("east", "west"),
        {("west", "east.active"): RECORDS, ("east", "west.active"): RECORDS},
    ),
)


@pytest.fixture(scope="module")
def clusters() -> Iterator[Layout]:
    with temporary_clusters() as layout:
        start_target(layout, "outside.kafka")
        yield layout


def is_there(layout: Layout, site: str, topic: str, count: int) -> bool:
    if partition_count(layout, site, topic) < PARTITIONS:
        return False
    return all(len(read(layout, site, topic, partition)) >= count for partition in range(PARTITIONS))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_lost_nothing_is_doubled_and_the_order_is_kept(clusters: Layout, tmp_path: Path, case: Case) -> None:
    mirror = f"  - {{name: {case.name}, {case.mirror}, topics: [{case.name}]}}\n"
    config = configuration(clusters, tmp_path, mirror, further=["outside"])
    for site in case.writers:
        make_topic(clusters, site, case.name, PARTITIONS)
    with running_mirror(config, case.name):
        for first in range(0, RECORDS, 500):
            for site in case.writers:
                values: list[bytes | None] = [f"{site} {number}".encode() for number in range(first, first + 500)]
                for partition in range(PARTITIONS):
                    write(clusters, site, case.name, values, partition)
        for (site, topic), count in case.expected.items():
            arrived = partial(is_there, clusters, site, topic, count)
            wait_until(f"{count} records of {topic} are at {site}", arrived, Deadline.after(150), every_seconds=0.5)
    verified = call("mirror", "verify", "--json", "--config", str(config))
    topics = verified.answer("mirror-verify")["topics"]
    assert verified.code == 0, topics
    assert sum(one["compared"]["copies"] for one in topics) == PARTITIONS * sum(case.expected.values())
