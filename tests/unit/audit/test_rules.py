"""Every rule over facts: nothing where all is right, its finding where one thing is wrong, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from unit.audit.seen import (
    broker,
    cluster,
    database,
    found,
    pair,
    partition,
    planned,
    rules_of,
    side,
    topic,
    unknown,
)
from zerotail.audit.facts import (
    BrokerFacts,
    ClusterFacts,
    DatabaseFacts,
    FollowerFacts,
    PairFacts,
    PlannedTopicFacts,
    SettingOverride,
    SlotFacts,
    Subject,
    TopicFacts,
)

pytestmark = pytest.mark.fast

RIGHT: list[Subject] = [
    cluster(),
    broker(),
    broker(offsets_retention_minutes="4320"),
    topic(),
    topic(partition(0), partition(1, leader=2)),
    topic(name="__consumer_offsets", ours=False, cleanup_policy="compact", retention_ms="1", retention_bytes="1"),
    topic(ours=False, message_timestamp_type="CreateTime"),
    topic(ours=False, cleanup_policy="compact,delete"),
    topic(retention_ms="-1"),
    topic(retention_ms=str(3 * 86_400_000)),
    topic(name="__transaction_state", ours=False, retention_ms="1"),
    topic(ours=False, cleanup_policy="compact", retention_ms="1", retention_bytes="1"),
    topic(racks={1: "a", 2: "a", 3: "a"}, flush_messages="1"),
    planned(),
    planned(replication=5, min_insync=3),
    planned(retention_days=3),
    database(),
    database("west", standby=True),
    database("west", standby=True, synchronous_standby_names=""),
    database("west", standby=True, overrides=(SettingOverride("clerk", None, "off"),), unlogged=("public.fast",)),
    database(synchronous_commit="remote_apply"),
    database(overrides=(SettingOverride("clerk", None, "remote_apply"), SettingOverride(None, "core", "on"))),
    database(
        followers=(FollowerFacts("a", "streaming", "async", True), FollowerFacts("w", "streaming", "quorum", True))
    ),
    pair(),
    pair(side("east", topics={}), side("west")),
]

WRONG: list[tuple[Subject, dict[str, list[str]]]] = [
    (
        cluster({1: "a", 2: "b"}),
        {"cluster-brokers": ["2 brokers are alive"], "cluster-racks": ["all brokers are in 2 racks: a, b"]},
    ),
    (cluster({1: "a", 2: None, 3: ""}), {"cluster-racks": ["broker.rack is not set on 2, 3"]}),
    (cluster({1: "a", 2: "b", 3: "a", 4: "b"}), {"cluster-racks": ["all brokers are in 2 racks: a, b"]}),
    (cluster(eligible_leaders=0), {"cluster-eligible-leaders": ["eligible.leader.replicas.version=0"]}),
    (
        broker(unclean_leader_election_enable="true"),
        {"broker-unclean-election": ["unclean.leader.election.enable=true"]},
    ),
    (broker(auto_create_topics_enable="true"), {"broker-auto-create": ["auto.create.topics.enable=true"]}),
    (broker(default_replication_factor="2"), {"broker-default-replication": ["default.replication.factor=2"]}),
    (broker(min_insync_replicas="1"), {"broker-min-insync": ["min.insync.replicas=1"]}),
    (
        broker(offsets_topic_replication_factor="1", transaction_state_log_min_isr="1"),
        {"broker-internal-topics": ["offsets.topic.replication.factor=1", "transaction.state.log.min.isr=1"]},
    ),
    (
        broker(offsets_retention_minutes="4319"),
        {"broker-offsets-retention": ["offsets.retention.minutes=4319, and readers may be away for 3 days"]},
    ),
    (
        topic(partition(), partition(1, leader=2, replicas="2", in_sync="2"), min_insync_replicas="1"),
        {
            "topic-replication": ["replication factor 1 in partition 1"],
            "topic-min-insync": ["min.insync.replicas=1"],
            "topic-in-sync": ["in sync: 1 of 2 in partition 1"],
            "topic-flush": [
                "flush.messages=9223372036854775807, and all copies are in one rack, or in one that nobody named, "
                "in partition 1"
            ],
        },
    ),
    (topic(min_insync_replicas="1"), {"topic-min-insync": ["min.insync.replicas=1"]}),
    (
        topic(min_insync_replicas="3"),
        {"topic-min-insync-headroom": ["min.insync.replicas=3 with replication factor 3"]},
    ),
    (topic(unclean_leader_election_enable="true"), {"topic-unclean-election": ["unclean.leader.election.enable=true"]}),
    (
        topic(partition(leader=None, in_sync="1")),
        {
            "topic-offline": ["no leader for partition 0"],
            "topic-under-replicated": ["partition 0; of 0, 1 of 3 copies are in sync"],
        },
    ),
    (topic(partition(in_sync="12")), {"topic-under-replicated": ["partition 0; of 0, 2 of 3 copies are in sync"]}),
    (
        topic(partition(in_sync="1")),
        {
            "topic-under-replicated": ["partition 0; of 0, 1 of 3 copies are in sync"],
            "topic-in-sync": ["in sync: 1 of 2 in partition 0"],
        },
    ),
    (
        topic(*[partition(number, in_sync="12") for number in range(8)]),
        {"topic-under-replicated": ["partitions 0, 1, 2, 3, 4 and 3 more; of 0, 2 of 3 copies are in sync"]},
    ),
    (
        topic(racks={1: None, 2: None, 3: None}),
        {
            "topic-flush": [
                "flush.messages=9223372036854775807, and all copies are in one rack, or in one that nobody named, "
                "in partition 0"
            ]
        },
    ),
    (topic(racks={1: "a", 2: "a", 3: "b", 4: "c"}), {"topic-racks": ["copies share racks in partition 0"]}),
    (
        topic(racks={1: "a", 2: "a", 3: "a"}),
        {
            "topic-flush": [
                "flush.messages=9223372036854775807, and all copies are in one rack, or in one that nobody named, "
                "in partition 0"
            ]
        },
    ),
    (
        topic(retention_ms="86400000"),
        {"topic-retention": ["retention.ms=86400000 is 1 days, and readers may be away for 3 days"]},
    ),
    (
        topic(retention_ms="0"),
        {"topic-retention": ["retention.ms=0 is 0 days, and readers may be away for 3 days"]},
    ),
    (
        topic(partition(replicas="12", in_sync="12")),
        {
            "topic-replication": ["replication factor 2 in partition 0"],
            "topic-min-insync-headroom": ["min.insync.replicas=2 with replication factor 2"],
        },
    ),
    (
        topic(*[partition(number, in_sync="12") for number in range(5)]),
        {"topic-under-replicated": ["partitions 0, 1, 2, 3, 4; of 0, 2 of 3 copies are in sync"]},
    ),
    (
        topic(*[partition(number, in_sync="12") for number in range(2)]),
        {"topic-under-replicated": ["partitions 0, 1; of 0, 2 of 3 copies are in sync"]},
    ),
    (topic(retention_bytes="0"), {"topic-retention-bytes": ["retention.bytes=0"]}),
    (topic(cleanup_policy="compact,delete"), {"topic-cleanup": ["cleanup.policy=compact,delete"]}),
    (topic(message_timestamp_type="CreateTime"), {"topic-timestamp": ["message.timestamp.type=CreateTime"]}),
    (planned(replication=1, min_insync=1), {"topic-planned": ["replication 1, min_insync 1"]}),
    (planned(min_insync=3), {"topic-planned": ["min_insync 3"]}),
    (planned(retention_days=1), {"topic-planned": ["retention 1 days, and readers may be away for longer"]}),
    (database(fsync="off"), {"postgres-fsync": ["fsync=off"]}),
    (database(full_page_writes="off"), {"postgres-full-page-writes": ["full_page_writes=off"]}),
    *[
        (database(synchronous_commit=value), {"postgres-synchronous-commit": [f"synchronous_commit={value}"]})
        for value in ("off", "local", "remote_write")
    ],
    (
        database(
            overrides=(
                SettingOverride("clerk", None, "off"),
                SettingOverride(None, "core", "local"),
                SettingOverride("clerk", "core", "remote_write"),
                SettingOverride(None, None, "off"),
            )
        ),
        {
            "postgres-synchronous-commit-overrides": [
                "synchronous_commit=off for role clerk",
                "synchronous_commit=local for every role in database core",
                "synchronous_commit=remote_write for role clerk in database core",
                "synchronous_commit=off for every role",
            ]
        },
    ),
    (database(synchronous_standby_names=" "), {"postgres-standby-names": ["synchronous_standby_names= "]}),
    (database(followers=()), {"postgres-standby-streaming": ["no synchronous standby follows: nobody does"]}),
    (
        database(followers=(FollowerFacts("west", "catchup", "sync", True),)),
        {"postgres-standby-streaming": ["no synchronous standby follows: west is catchup and sync"]},
    ),
    (
        database(followers=(FollowerFacts("west", "streaming", "potential", True),)),
        {"postgres-standby-streaming": ["no synchronous standby follows: west is streaming and potential"]},
    ),
    (database(data_checksums="off"), {"postgres-checksums": ["data_checksums=off"]}),
    (
        database(zero_damaged_pages="on", ignore_checksum_failure="on"),
        {"postgres-damage-ignored": ["zero_damaged_pages=on", "ignore_checksum_failure=on"]},
    ),
    (database(data_sync_retry="on"), {"postgres-sync-retry": ["data_sync_retry=on"]}),
    (
        database(followers=(FollowerFacts("west", "streaming", "sync", False),)),
        {"postgres-standby-slot": ["standby west follows without a slot"]},
    ),
    (
        database(
            slots=(SlotFacts("a", False, "reserved"), SlotFacts("b", True, "lost"), SlotFacts("c", False, "unreserved"))
        ),
        {
            "postgres-slots": [
                "slot a keeps the log for nobody",
                "slot b: its log is lost",
                "slot c: its log is unreserved",
            ]
        },
    ),
    (database(unlogged=("public.fast",)), {"postgres-unlogged": ["unlogged table public.fast"]}),
    (
        pair(west=side("west", data=database("west", system=8, standby=True))),
        {"sites-databases-pair": ["the databases are no copies of one another: their system identifiers differ"]},
    ),
    (pair(west=side("west", data=database("west"))), {"sites-databases-pair": ["both databases are primaries"]}),
    (
        pair(west=side("west", data=database("west", standby=True, version=170004, max_connections="100"))),
        {
            "sites-databases": [
                "database: version is 18 at east and 17 at west",
                "database: max_connections is 200 at east and 100 at west",
            ]
        },
    ),
    (
        pair(west=side("west", brokers=broker("west", message_max_bytes="9"))),
        {"sites-brokers": ["brokers: message.max.bytes is 1048588 at east and 9 at west"]},
    ),
    (
        pair(west=side("west", topics={"payments": topic(partition(), partition(1), retention_ms="-1", site="west")})),
        {
            "sites-topics": [
                "topic payments: partitions is 1 at east and 2 at west",
                "topic payments: retention.ms is 604800000 at east and -1 at west",
            ]
        },
    ),
]


@pytest.mark.parametrize("subject", RIGHT, ids=lambda subject: subject.name)
def test_nothing_is_found_where_all_is_right(subject: Subject) -> None:
    assert found(subject) == {}


@pytest.mark.parametrize(("subject", "expected"), WRONG)
def test_one_thing_that_is_wrong_is_found_and_nothing_else(subject: Subject, expected: dict[str, list[str]]) -> None:
    assert found(subject) == expected


def test_every_rule_about_servers_is_found_somewhere_above() -> None:
    kinds = (ClusterFacts, BrokerFacts, TopicFacts, PlannedTopicFacts, DatabaseFacts, PairFacts)
    expected = {rule for _, rules in WRONG for rule in rules}
    assert expected == {rule for kind in kinds for rule in rules_of(kind)}


@pytest.mark.parametrize(
    ("subject", "rules", "reason"),
    [
        (cluster(eligible_leaders="no way"), {"cluster-eligible-leaders"}, "no way"),
        (broker(auto_create_topics_enable=None), {"broker-auto-create"}, "auto.create.topics.enable could not be read"),
        (
            broker(min_insync_replicas="many"),
            {"broker-min-insync"},
            "min.insync.replicas is 'many', which is no number",
        ),
        (
            topic(racks={1: "a", 2: "b"}),
            {"topic-racks", "topic-flush"},
            "nobody knows the rack of broker 3, which is not alive",
        ),
        (database(fsync="maybe"), {"postgres-fsync"}, "fsync is 'maybe', which is neither on nor off"),
        (
            database(followers=(FollowerFacts("west", None, None, False),)),
            {"postgres-standby-streaming", "postgres-standby-slot"},
            "pg_stat_replication hides the standbys from this user: grant pg_read_all_stats",
        ),
    ],
)
def test_a_fact_that_was_not_seen_never_passes(subject: Subject, rules: set[str], reason: str) -> None:
    assert unknown(subject) == dict.fromkeys(rules, reason)


@pytest.mark.parametrize("name", sorted({"fsync", "synchronous_commit", "synchronous_standby_names", "data_checksums"}))
def test_a_database_setting_that_was_not_seen_never_passes(name: str) -> None:
    changed: dict[str, Any] = {name: None}
    assert unknown(database(**changed)) != {}
