"""Rules about clusters and brokers."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.audit.facts import DAY_SECONDS, BrokerFacts, ClusterFacts, NotSeen
from zerotail.audit.rule import AnyRule, Rule, Violation

COPIES = 3
IN_SYNC = 2
_CONFIGS = "kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type brokers"
_PROPERTIES = "{setting}={value}    # in server.properties of broker {broker}, then restart it"
_INTERNAL = {
    "offsets.topic.replication.factor": COPIES,
    "transaction.state.log.replication.factor": COPIES,
    "transaction.state.log.min.isr": IN_SYNC,
}


def _too_few_brokers(cluster: ClusterFacts) -> Iterator[Violation]:
    if len(cluster.racks) < COPIES:
        yield Violation(f"{len(cluster.racks)} brokers are alive")


def _too_few_racks(cluster: ClusterFacts) -> Iterator[Violation]:
    nameless = [str(broker) for broker, rack in sorted(cluster.racks.items()) if not rack]
    named = sorted({rack for rack in cluster.racks.values() if rack})
    if nameless:
        yield Violation(f"broker.rack is not set on {', '.join(nameless)}")
    elif len(named) < COPIES:
        yield Violation(f"all brokers are in {len(named)} racks: {', '.join(named)}")


def _no_eligible_leaders(cluster: ClusterFacts) -> Iterator[Violation]:
    if isinstance(cluster.eligible_leaders, str):
        raise NotSeen(cluster.eligible_leaders)
    if cluster.eligible_leaders < 1:
        yield Violation(f"eligible.leader.replicas.version={cluster.eligible_leaders}")


def _unclean(broker: BrokerFacts) -> Iterator[Violation]:
    if broker.settings.switch("unclean.leader.election.enable"):
        yield Violation(broker.settings.shown("unclean.leader.election.enable"))


def _makes_topics(broker: BrokerFacts) -> Iterator[Violation]:
    if broker.settings.switch("auto.create.topics.enable"):
        yield Violation(broker.settings.shown("auto.create.topics.enable"))


def _below(broker: BrokerFacts, setting: str, least: int) -> Iterator[Violation]:
    if broker.settings.number(setting) < least:
        yield Violation(broker.settings.shown(setting), {"setting": setting, "value": str(least)})


def _few_copies_by_default(broker: BrokerFacts) -> Iterator[Violation]:
    return _below(broker, "default.replication.factor", COPIES)


def _few_in_sync_by_default(broker: BrokerFacts) -> Iterator[Violation]:
    return _below(broker, "min.insync.replicas", IN_SYNC)


def _weak_internal_topics(broker: BrokerFacts) -> Iterator[Violation]:
    for setting, least in _INTERNAL.items():
        yield from _below(broker, setting, least)


def _forgets_groups(broker: BrokerFacts) -> Iterator[Violation]:
    kept_seconds = broker.settings.number("offsets.retention.minutes") * 60
    if kept_seconds < broker.recovery_seconds:
        wanted = -(-broker.recovery_seconds // 60)
        yield Violation(
            f"{broker.settings.shown('offsets.retention.minutes')}, "
            f"and readers may be away for {broker.recovery_seconds / DAY_SECONDS:g} days",
            {"setting": "offsets.retention.minutes", "value": str(wanted)},
        )


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="cluster-brokers",
        title="A cluster has three brokers alive",
        weight="risk",
        kind=ClusterFacts,
        looks_at="brokers that the cluster counts as alive",
        violations=_too_few_brokers,
        why="With two brokers left every acknowledged record has two copies at most: while one of them is restarted, "
        "the other one's disk is all there is.",
        default="Nothing counts brokers; a cluster of one takes every write.",
        repair="systemctl start kafka    # on the broker of {site} that is missing; a cluster of two gets a third",
    ),
    Rule(
        id="cluster-racks",
        title="Brokers name their racks, and there are three of them",
        weight="risk",
        kind=ClusterFacts,
        looks_at="broker.rack",
        violations=_too_few_racks,
        why="Kafka spreads copies over the racks that it knows: without names, or with two racks, both in-sync "
        "copies of a record may hang on one power line, and its fuse takes a record that was acknowledged.",
        default="broker.rack is not set by default, and copies are then placed regardless of racks.",
        repair="broker.rack=RACK    # in server.properties of each broker of {site}, then restart them one by one",
    ),
    Rule(
        id="cluster-eligible-leaders",
        title="A copy that may lack records never becomes leader",
        weight="risk",
        kind=ClusterFacts,
        looks_at="the feature eligible.leader.replicas.version",
        violations=_no_eligible_leaders,
        why="The in-sync set shrinks to one broker, its power fails, it comes back without the records that were in "
        "its page cache and is leader again as the last one in the set: the other two, which have the records, cut "
        "theirs off.",
        default="On for clusters that were formatted with Kafka 4.1 or later; a cluster that was upgraded keeps it "
        "off.",
        repair="kafka-features.sh --bootstrap-server {bootstrap} upgrade --feature eligible.leader.replicas.version=1",
    ),
    Rule(
        id="broker-unclean-election",
        title="No broker lets a copy that is behind become leader",
        weight="loss",
        kind=BrokerFacts,
        looks_at="unclean.leader.election.enable of the broker",
        violations=_unclean,
        why="The leader dies while a follower is a minute behind: the follower becomes leader, and a minute of "
        "acknowledged records is cut off everywhere.",
        default="false since Kafka 0.11; it is found on where availability was wanted once.",
        repair=f"{_CONFIGS} --entity-default --add-config unclean.leader.election.enable=false"
        "    # and remove it from server.properties of broker {broker}",
    ),
    Rule(
        id="broker-auto-create",
        title="Topics are made by people, not by requests",
        weight="risk",
        kind=BrokerFacts,
        looks_at="auto.create.topics.enable",
        violations=_makes_topics,
        why="A service with a mistyped topic gets acknowledgements from a new topic that nobody reads, and a topic "
        "that was deleted by mistake comes back empty before anybody notices.",
        default="true by default, and such a topic gets default.replication.factor, which is 1 by default.",
        repair="auto.create.topics.enable=false    # in server.properties of broker {broker}, then restart it",
    ),
    Rule(
        id="broker-default-replication",
        title="A topic that says nothing gets three copies",
        weight="risk",
        kind=BrokerFacts,
        looks_at="default.replication.factor",
        violations=_few_copies_by_default,
        why="A topic made in a hurry has one copy: the broker that holds it is replaced, and all its records are gone.",
        default="1 by default.",
        repair=_PROPERTIES,
    ),
    Rule(
        id="broker-min-insync",
        title="A topic that says nothing acknowledges with two copies",
        weight="risk",
        kind=BrokerFacts,
        looks_at="min.insync.replicas of the broker",
        violations=_few_in_sync_by_default,
        why="With 1 the leader acknowledges alone as soon as the followers lag, and acks=all means the same as acks=1.",
        default="1 by default.",
        repair=f"{_CONFIGS} --entity-default --add-config min.insync.replicas=2",
    ),
    Rule(
        id="broker-internal-topics",
        title="Places of groups and transactions have three copies",
        weight="risk",
        kind=BrokerFacts,
        looks_at="offsets.topic.replication.factor, transaction.state.log.replication.factor, "
        "transaction.state.log.min.isr",
        violations=_weak_internal_topics,
        why="The one broker with a group's places dies: the group starts wherever auto.offset.reset says, and with "
        "`latest` skips all that it had not read.",
        default="3, 3 and 2 by default; configuration files of small clusters set them to 1 and are copied.",
        repair=_PROPERTIES,
    ),
    Rule(
        id="broker-offsets-retention",
        title="A group's place outlives the longest absence",
        weight="risk",
        kind=BrokerFacts,
        looks_at="offsets.retention.minutes against the recovery window",
        violations=_forgets_groups,
        why="A service is down for longer than this; its place is forgotten, auto.offset.reset decides, and with "
        "`latest` everything written in between is never read.",
        default="10080 (seven days); it was 1440 (one day) before Kafka 2.0.",
        repair=_PROPERTIES,
    ),
)
