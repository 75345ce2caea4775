"""What a topic at the target is made like."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zerotail.mirror.topics import TopicFacts, plan_topic

pytestmark = pytest.mark.fast

SOURCE = TopicFacts(
    "audit",
    "id",
    4,
    3,
    {
        "cleanup.policy": "compact",
        "min.insync.replicas": "2",
        "retention.ms": "604800000",
        "unclean.leader.election.enable": "false",
        "segment.bytes": "1073741824",
        "max.compaction.lag.ms": "1000",
        "message.timestamp.type": "LogAppendTime",
        "leader.replication.throttled.replicas": "1:2",
    },
    frozenset({"max.compaction.lag.ms", "leader.replication.throttled.replicas"}),
)
ALIKE = {name: SOURCE.settings[name] for name in SOURCE.settings if not name.startswith("leader.")} | {
    "message.timestamp.type": "CreateTime"
}


def test_a_new_topic_gets_the_settings_that_guard_against_loss_and_those_that_were_given() -> None:
    plan = plan_topic(SOURCE, "east.audit", None, brokers=3)
    assert (plan.make, plan.partitions, plan.copies) == (True, 4, 3)
    assert plan.settings == {
        "cleanup.policy": "compact",
        "min.insync.replicas": "2",
        "retention.ms": "604800000",
        "unclean.leader.election.enable": "false",
        "max.compaction.lag.ms": "1000",
        "message.timestamp.type": "CreateTime",
    }


def test_a_small_target_gets_as_many_copies_as_it_has_brokers_and_says_so() -> None:
    plan = plan_topic(SOURCE, "audit", None, brokers=1)
    assert plan.copies == 1
    assert plan.settings["min.insync.replicas"] == "1"
    assert plan.notes == ("1 copies instead of 3: the target has 1 brokers",)


def test_a_topic_that_is_alike_is_left_alone() -> None:
    assert plan_topic(SOURCE, "audit", replace(SOURCE, settings=ALIKE), brokers=3).is_ready


def test_a_topic_that_has_grown_grows_at_the_target() -> None:
    there = replace(SOURCE, settings=ALIKE, partitions=2)
    plan = plan_topic(SOURCE, "audit", there, brokers=3)
    assert (plan.make, plan.partitions, plan.is_ready) == (False, 4, False)


def test_more_partitions_at_the_target_are_told_and_kept() -> None:
    plan = plan_topic(SOURCE, "audit", replace(SOURCE, settings=ALIKE, partitions=6), brokers=3)
    assert plan.partitions == 0
    assert plan.notes == ("the target has 6 partitions, the source 4",)


def test_a_setting_that_has_changed_is_changed_at_the_target() -> None:
    there = replace(SOURCE, settings=ALIKE | {"retention.ms": "1000"})
    assert plan_topic(SOURCE, "audit", there, brokers=3).settings == {"retention.ms": "604800000"}
