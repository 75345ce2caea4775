"""One cluster over three sites: every acknowledged write is at two of them, whichever is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from support.command import call
from zerotail.core.identity import TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.feed import Feeder, count_records
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.up import temporary_lab

pytestmark = pytest.mark.nightly

PARTITIONS = 6
WIDE = TopicSettings(PARTITIONS, copies=3, min_insync=2, retention=timedelta(days=7))


@pytest.fixture(scope="module")
def stretched() -> Iterator[Layout]:
    def plan(folder: Path) -> LabSettings:
        return LabSettings(folder, stretch=True)

    with temporary_lab(plan) as layout:
        ensure_topic(admin_client(Cluster(layout.wide_bootstrap)), TopicName("wide"), WIDE)
        yield layout


def written(layout: Layout, count: int) -> int:
    """How many of so many records are acknowledged within some seconds."""
    feeder = Feeder(Cluster(layout.wide_bootstrap), "wide", message_timeout_ms=5000)
    for number in range(count):
        feeder.send(b"%d" % number, partition=number % PARTITIONS)
    try:
        feeder.finish()
    except Unavailable:
        assert feeder.acknowledged < count
    return feeder.acknowledged


def kept(layout: Layout) -> int:
    return sum(count for count, _ in count_records(Cluster(layout.wide_bootstrap), "wide", PARTITIONS).values())


def set_minimum(layout: Layout, value: str) -> None:
    entry = ConfigEntry("min.insync.replicas", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "wide", incremental_configs=[entry])
    client = admin_client(Cluster(layout.wide_bootstrap))  # kept until it has answered
    for answer in client.incremental_alter_configs([resource]).values():
        answer.result(10)


def whole(layout: Layout) -> bool:
    """Whether every partition has all its copies in sync."""
    client = admin_client(Cluster(layout.wide_bootstrap))
    described = client.describe_topics(TopicCollection(["wide"]))["wide"].result(10)
    return all(len(partition.isr) == WIDE.copies for partition in described.partitions)


def test_every_partition_has_a_copy_at_each_site_and_nothing_is_found_by_the_audit(stretched: Layout) -> None:
    client = admin_client(Cluster(stretched.wide_bootstrap))
    described = client.describe_topics(TopicCollection(["wide"]))["wide"].result(10)
    sites = [sorted(node.rack for node in partition.replicas) for partition in described.partitions]
    assert sites == [["east", "outside", "west"]] * PARTITIONS
    config = str(stretched.path / "zerotail.yaml")
    audited = call("audit", "--config", config)
    assert audited.code == 0, audited.out
    planned = call("mirror", "plan", "--config", config)
    assert planned.code == 0, planned.err
    assert "one cluster over several sites" in planned.out


def test_a_topic_that_takes_writes_of_one_site_alone_is_found_by_the_audit(stretched: Layout) -> None:
    config = str(stretched.path / "zerotail.yaml")
    set_minimum(stretched, "1")
    try:

        def finds_it() -> bool:
            said = call("audit", "--config", config)
            return said.code == 1 and "min.insync.replicas=1" in said.out

        wait_until("the audit finds it", finds_it, Deadline.after(30))
    finally:
        set_minimum(stretched, "2")


def test_what_was_acknowledged_outlives_any_site_and_nothing_is_acknowledged_at_one_alone(stretched: Layout) -> None:
    wait_until("all copies are in sync", lambda: whole(stretched), Deadline.after(60))
    acknowledged = written(stretched, 600)
    assert acknowledged == 600
    for site in ("east", "west", "outside"):
        assert kill_target(stretched, f"{site}.kafka").bit
        wait_until(
            "the other two have leaders", lambda: written(stretched, PARTITIONS) == PARTITIONS, Deadline.after(60)
        )
        acknowledged += PARTITIONS
        assert kept(stretched) >= acknowledged
        start_target(stretched, f"{site}.kafka")
        wait_until("all copies are in sync", lambda: whole(stretched), Deadline.after(60))
    for site in ("east", "west"):
        assert kill_target(stretched, f"{site}.kafka").bit
    assert written(stretched, 60) == 0
    for site in ("east", "west"):
        start_target(stretched, f"{site}.kafka")
    wait_until("all copies are in sync", lambda: whole(stretched), Deadline.after(60))
    assert kept(stretched) >= acknowledged
