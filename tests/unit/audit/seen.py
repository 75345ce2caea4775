"""Facts as they are where everything is set right, to be changed by a test in one place."""

from __future__ import annotations

from zerotail.audit.facts import (
    DAY_SECONDS,
    BrokerFacts,
    ClusterFacts,
    DatabaseFacts,
    FollowerFacts,
    Observed,
    PairFacts,
    PartitionFacts,
    PlannedTopicFacts,
    Settings,
    SiteFacts,
    SlotFacts,
    Subject,
    TopicFacts,
)
from zerotail.audit.judgement import judge
from zerotail.audit.rules import RULES

RECOVERY_SECONDS = 3 * DAY_SECONDS
RACKS = {1: "a", 2: "b", 3: "c"}
BROKER_SETTINGS = {
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.retention.minutes": "10080",
    "message.max.bytes": "1048588",
}
TOPIC_SETTINGS = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.type": "LogAppendTime",
    "flush.messages": "9223372036854775807",
    "max.message.bytes": "1048588",
}
DATABASE_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "FIRST 1 (west)",
    "data_checksums": "on",
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
    "data_sync_retry": "off",
    "wal_level": "replica",
    "max_wal_senders": "10",
    "max_connections": "200",
    "max_prepared_transactions": "0",
    "max_slot_wal_keep_size": "4096",
}


def settings(right: dict[str, str], changed: dict[str, str | None]) -> Settings:
    """Right ones with some changed; None takes one away. Underscores of Kafka's names are dots."""
    merged: dict[str, str | None] = {**right, **changed}
    return Settings({name: value for name, value in merged.items() if value is not None})


def dotted(changed: dict[str, str | None]) -> dict[str, str | None]:
    return {name.replace("_", "."): value for name, value in changed.items()}


def cluster(racks: dict[int, str | None] | None = None, eligible_leaders: int | str = 1) -> ClusterFacts:
    return ClusterFacts("east", "e1:9092", RACKS if racks is None else racks, eligible_leaders)


def broker(site: str = "east", **changed: str | None) -> BrokerFacts:
    return BrokerFacts(site, "e1:9092", 1, settings(BROKER_SETTINGS, dotted(changed)), RECOVERY_SECONDS)


def partition(
    number: int = 0, *, leader: int | None = 1, replicas: str = "123", in_sync: str = "123"
) -> PartitionFacts:
    return PartitionFacts(number, leader, tuple(map(int, replicas)), tuple(map(int, in_sync)))


def topic(
    *partitions: PartitionFacts,
    name: str = "payments",
    ours: bool = True,
    racks: dict[int, str | None] | None = None,
    site: str = "east",
    **changed: str | None,
) -> TopicFacts:
    return TopicFacts(
        site,
        "e1:9092",
        name,
        ours,
        settings(TOPIC_SETTINGS, dotted(changed)),
        partitions or (partition(),),
        RACKS if racks is None else racks,
        RECOVERY_SECONDS,
    )


def planned(replication: int = 3, min_insync: int = 2, retention_days: int = 7) -> PlannedTopicFacts:
    days = retention_days * DAY_SECONDS
    return PlannedTopicFacts("payments", ("east",), replication, min_insync, days, RECOVERY_SECONDS)


def database(site: str = "east", *, standby: bool = False, **changed: object) -> DatabaseFacts:
    """Names of settings, or of fields."""
    fields: dict[str, object] = {
        "overrides": (),
        "followers": () if standby else (FollowerFacts("west", "streaming", "sync", True),),
        "slots": () if standby else (SlotFacts("west", True, "reserved"),),
        "unlogged": (),
        "system": 7,
        "version": 180004,
    }
    own = {name: changed.pop(name) for name in list(changed) if name in fields}
    known = settings(
        DATABASE_SETTINGS, {name: None if value is None else str(value) for name, value in changed.items()}
    )
    return DatabaseFacts(site, "host=h", standby, settings=known, **{**fields, **own})  # type: ignore[arg-type]


def pair(east: SiteFacts | None = None, west: SiteFacts | None = None) -> PairFacts:
    return PairFacts(east or side("east"), west or side("west"))


def side(
    name: str,
    *,
    brokers: BrokerFacts | None = None,
    topics: dict[str, TopicFacts] | None = None,
    data: DatabaseFacts | None = None,
) -> SiteFacts:
    return SiteFacts(
        name,
        (brokers or broker(name),),
        {"payments": topic(site=name)} if topics is None else topics,
        data or database(name, standby=name == "west"),
    )


def found(subject: Subject) -> dict[str, list[str]]:
    """What is found about one subject: rules, and what each says was seen."""
    audit = judge(Observed((subject,)))
    assert not audit.unknown, audit.unknown
    result: dict[str, list[str]] = {}
    for finding in audit.findings:
        result.setdefault(finding.rule, []).append(finding.seen)
    return result


def unknown(subject: Subject) -> dict[str, str]:
    """Rules that have no answer about a subject, and why."""
    return {rule: one.reason for one in judge(Observed((subject,))).unknown for rule in one.rules}


def rules_of(kind: type) -> set[str]:
    return {rule.id for rule in RULES if rule.kind is kind}
