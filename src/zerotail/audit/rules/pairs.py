"""Rules about the two sites together: after a takeover the other one must be able to do what this one did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from zerotail.audit.facts import PairFacts, SiteFacts, TopicFacts
from zerotail.audit.rule import AnyRule, Rule, Violation

_TOPIC_SETTINGS = (
    "min.insync.replicas",
    "cleanup.policy",
    "retention.ms",
    "message.timestamp.type",
    "max.message.bytes",
)
_BROKER_SETTINGS = (
    "message.max.bytes",
    "default.replication.factor",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "auto.create.topics.enable",
    "offsets.retention.minutes",
)
_DATABASE_SETTINGS = (
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "data_checksums",
    "wal_level",
    "max_wal_senders",
    "max_connections",
    "max_prepared_transactions",
    "max_slot_wal_keep_size",
)


def _other_topics(pair: PairFacts) -> Iterator[Violation]:
    for name in sorted(pair.first.topics.keys() & pair.second.topics.keys()):
        here, there = (_shape(site.topics[name]) for site in (pair.first, pair.second))
        yield from _differences(pair, here, there, f"topic {name}: ")


def _shape(topic: TopicFacts) -> dict[str, str]:
    counted = {"partitions": str(len(topic.partitions)), "replication factor": str(topic.copies)}
    return counted | {name: topic.settings[name] for name in _TOPIC_SETTINGS}


def _other_brokers(pair: PairFacts) -> Iterator[Violation]:
    here, there = ({name: _all_values(site, name) for name in _BROKER_SETTINGS} for site in (pair.first, pair.second))
    yield from _differences(pair, here, there, "brokers: ")


def _all_values(site: SiteFacts, name: str) -> str:
    return " or ".join(sorted({broker.settings[name] for broker in site.brokers}))


def _other_databases(pair: PairFacts) -> Iterator[Violation]:
    here, there = (
        {"version": str(site.database.version // 10_000)}
        | {name: site.database.settings[name] for name in _DATABASE_SETTINGS}
        for site in (pair.first, pair.second)
    )
    yield from _differences(pair, here, there, "database: ")


def _differences(pair: PairFacts, here: Mapping[str, str], there: Mapping[str, str], what: str) -> Iterator[Violation]:
    for name, value in here.items():
        if there[name] != value:
            seen = f"{what}{name} is {value} at {pair.first.site} and {there[name]} at {pair.second.site}"
            yield Violation(seen, {"setting": name, "value": value})


def _not_a_pair(pair: PairFacts) -> Iterator[Violation]:
    first, second = pair.first, pair.second
    if first.database.system != second.database.system:
        yield Violation("the databases are no copies of one another: their system identifiers differ")
    elif first.database.is_standby == second.database.is_standby:
        yield Violation(f"both databases are {'standbys' if first.database.is_standby else 'primaries'}")


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="sites-databases-pair",
        title="One database is primary, the other one its standby",
        weight="loss",
        kind=PairFacts,
        looks_at="system identifiers and roles of both databases",
        violations=_not_a_pair,
        why="Both sites take writes that the other one does not have: whichever is given up, its commits are lost.",
        default="PostgreSQL knows nothing of a second primary; a promoted standby is one.",
        repair="zerotail status    # which one is active; then: zerotail rejoin plan",
    ),
    Rule(
        id="sites-databases",
        title="The other site's database is set like this one's",
        weight="risk",
        kind=PairFacts,
        looks_at=f"the version, {', '.join(_DATABASE_SETTINGS)}",
        violations=_other_databases,
        why="After the takeover the promoted database runs with settings that nobody has looked at: fsync was off "
        "there all the time, or fewer connections are allowed and services cannot commit.",
        default="Each server has files of its own; settings are not replicated.",
        repair="alter system set {setting} = '{value}'    # at {site}, if {value} is right; some need a restart",
    ),
    Rule(
        id="sites-brokers",
        title="The other site's brokers are set like these",
        weight="risk",
        kind=PairFacts,
        looks_at=", ".join(_BROKER_SETTINGS),
        violations=_other_brokers,
        why="After the takeover a record is larger than the other site's brokers accept, and the partition stands; "
        "or they acknowledge with one copy where two were the rule.",
        default="Each cluster has files of its own.",
        repair="{setting}={value}    # in server.properties of every broker of {site}, if {value} is right",
    ),
    Rule(
        id="sites-topics",
        title="A topic is the same at both sites",
        weight="risk",
        kind=PairFacts,
        looks_at=f"partitions, replication factor, {', '.join(_TOPIC_SETTINGS)} of configured topics",
        violations=_other_topics,
        why="After the takeover the topic has fewer partitions, or deletes after a day what was kept for a week here.",
        default="Topics are made at each site by themselves; what was altered here by hand is not altered there.",
        repair="kafka-configs.sh … --add-config {setting}={value}    # at {site}, if {value} is right",
    ),
)
