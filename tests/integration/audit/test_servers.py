"""Every rule about servers, on real ones: red where they are set wrongly, green where they are set right.

Where a repair is a line to type, that very line is typed, and the sites are clean again after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.audit.audited import TOPIC, Audited, findings
from integration.audit.wrong_servers import WRONG_RULES, WrongServers, start_wrong_servers
from zerotail.audit.facts import ConsumerFacts, ProducerFacts, SparkFacts
from zerotail.audit.rules import RULES
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.database import dsn
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.servers

Act = Callable[[Audited], None]


@dataclass(frozen=True)
class Fault:
    """A rule, how it is broken, the words that a finding says, and what remains to be tidied up after its repair."""

    rule: str
    plant: Act
    seen: str
    tidy: Act = lambda sites: None


def database(rule: str, name: str, wrong: str, right: str | None = None) -> Fault:
    """East's server, set wrongly."""

    def tidy(sites: Audited) -> None:
        sites.set_database("east", name, right)

    return Fault(rule, lambda sites: sites.set_database("east", name, wrong), f"{name}={wrong}", tidy)


def by_sql(rule: str, wrong: str, tidy: str, seen: str) -> Fault:
    """Something in east's database that should not be there."""
    return Fault(rule, lambda sites: sites.sql("east", wrong), seen, lambda sites: sites.sql("east", tidy))


def with_roles(sites: Audited) -> None:
    sites.sql(
        "east",
        'create role "night\'s clerk"',
        'alter role "night\'s clerk" set synchronous_commit = off',
        'alter role "night\'s clerk" in database postgres set synchronous_commit = local',
        "alter database template1 set synchronous_commit = remote_write",
        "alter role all set synchronous_commit = remote_apply",
    )


def without_roles(sites: Audited) -> None:
    sites.sql("east", 'drop role "night\'s clerk"', "alter role all reset synchronous_commit")


TOPIC_FAULTS = {
    "topic-min-insync": ("min.insync.replicas", "1", "2"),
    "topic-unclean-election": ("unclean.leader.election.enable", "true", None),
    "topic-retention": ("retention.ms", "3600000", "604800000"),
    "topic-retention-bytes": ("retention.bytes", "1000000", None),
    "topic-cleanup": ("cleanup.policy", "compact,delete", None),
    "topic-timestamp": ("message.timestamp.type", "CreateTime", "LogAppendTime"),
}
"""Of each rule the topic's setting: wrong, and as it is made; None is the cluster's."""
BROKER_FAULTS = {
    "broker-unclean-election": ("unclean.leader.election.enable", "true", "false"),
    "broker-min-insync": ("min.insync.replicas", "1", "2"),
}
DATABASE_FAULTS = [
    database("postgres-fsync", "fsync", "off"),
    database("postgres-full-page-writes", "full_page_writes", "off"),
    database("postgres-synchronous-commit", "synchronous_commit", "local"),
    database("postgres-standby-names", "synchronous_standby_names", "", "FIRST 1 (west)"),
    database("postgres-damage-ignored", "zero_damaged_pages", "on"),
    by_sql("postgres-unlogged", "create unlogged table fast (a int)", "drop table fast", "public.fast"),
    by_sql("postgres-slots", "select pg_create_physical_replication_slot('left_over', true)", "select 1", "left_over"),
    Fault("postgres-synchronous-commit-overrides", with_roles, "off for role night's clerk", without_roles),
]
DIED = {"cluster-brokers", "topic-under-replicated", "topic-in-sync", "topic-offline"}
CROWDED = {"cluster-racks", "topic-racks", "topic-flush"}
UNFOLLOWED = {"postgres-standby-slot", "postgres-slots"}
COMPARED = {"sites-topics", "sites-brokers", "sites-databases"}


def test_the_labs_no_loss_profile_has_no_finding(sites: Audited) -> None:
    said = sites.called("--strict")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("CLEAN     nothing found, ")
    about_servers = {rule.id for rule in RULES if rule.kind not in (ProducerFacts, ConsumerFacts, SparkFacts)}
    passed = {one.rule for one in sites.audit().passed}
    assert passed >= about_servers - {"topic-planned"}


@pytest.mark.parametrize("fault", DATABASE_FAULTS, ids=lambda fault: fault.rule)
def test_a_database_set_wrongly_is_found_and_the_printed_line_repairs_it(sites: Audited, fault: Fault) -> None:
    fault.plant(sites)
    try:
        found = sites.wait_until_found(fault.rule)
        assert any(fault.seen in finding.seen for finding in found), found
        for line in dict.fromkeys(finding.repair for finding in found):
            sites.type(line)
        wait_until_repaired(sites, [fault.rule])
    finally:
        fault.tidy(sites)


def test_a_topic_set_wrongly_is_found_and_the_printed_lines_repair_it(sites: Audited) -> None:
    for name, wrong, _ in TOPIC_FAULTS.values():
        sites.set_topic("east", name, wrong)
    try:
        found = {rule: sites.wait_until_found(rule) for rule in TOPIC_FAULTS}
        for rule, (name, wrong, _) in TOPIC_FAULTS.items():
            assert [one.seen.startswith(f"{name}={wrong}") for one in found[rule]] == [True]
        sites.type(joined([finding.repair for some in found.values() for finding in some]))
        wait_until_repaired(sites, TOPIC_FAULTS)
    finally:
        for name, _, right in TOPIC_FAULTS.values():
            sites.set_topic("east", name, right)


def test_brokers_set_wrongly_are_found_and_the_printed_lines_repair_them(sites: Audited) -> None:
    sites.set_brokers("east", {name: wrong for name, wrong, _ in BROKER_FAULTS.values()})
    repaired = False
    try:
        found = {rule: sites.wait_until_found(rule) for rule in BROKER_FAULTS}
        for rule, (name, wrong, _) in BROKER_FAULTS.items():
            assert {one.seen for one in found[rule]} == {f"{name}={wrong}"}
        sites.type(joined([finding.repair for some in found.values() for finding in some]))
        wait_until_repaired(sites, BROKER_FAULTS)
        repaired = True
    finally:
        if not repaired:
            sites.set_brokers("east", {name: right for name, _, right in BROKER_FAULTS.values()})


def joined(lines: list[str]) -> str:
    """Lines that give settings to the same servers, as one: Kafka's program takes a second to start."""
    typed = [line.split("    #")[0].split(" --add-config ") for line in lines]
    assert len({head for head, _ in typed}) == 1, lines
    return f"{typed[0][0]} --add-config {','.join(dict.fromkeys(given for _, given in typed))}"


def wait_until_repaired(sites: Audited, rules: Iterable[str]) -> None:
    """Return when all of these rules are kept."""

    def repaired() -> bool:
        audit = sites.audit()
        return not any(findings(audit, rule) for rule in rules)

    wait_until("all is repaired", repaired, Deadline.after(30))


def test_as_many_copies_in_sync_as_there_are_is_found(sites: Audited) -> None:
    sites.set_topic("east", "min.insync.replicas", "3")
    try:
        (found,) = sites.wait_until_found("topic-min-insync-headroom")
        assert found.seen == "min.insync.replicas=3 with replication factor 3"
        assert "--add-config min.insync.replicas=2 " in found.repair
    finally:
        sites.set_topic("east", "min.insync.replicas", "2")


def test_a_topic_with_one_copy_is_found_with_a_plan_for_three(sites: Audited) -> None:
    sites.make_topic("east", "hurried", [[2], [3]])
    try:
        (found,) = sites.wait_until_found("topic-replication")
        assert (found.subject, found.weight) == ("topic hurried at east", "loss")
        assert found.seen == "replication factor 1 in partitions 0, 1"
        assert '{"topic":"hurried","partition":0,"replicas":[2,1,3]}' in found.repair
    finally:
        sites.delete_topics("east", "hurried")


def test_a_broker_that_died_and_one_that_came_back_into_the_wrong_rack(sites: Audited) -> None:
    sites.make_topic("west", "pair", [[1, 2]], min_insync_replicas="1")
    sites.make_topic("west", "single", [[2]])
    properties = sites.lab.folder_of("west.kafka.2") / "server.properties"
    right = properties.read_text()
    try:
        assert kill_target(sites.lab, "west.kafka.2").bit
        for rule in sorted(DIED):
            sites.wait_until_found(rule)
        audit = sites.audit()
        assert (audit.unknown[0].subject, audit.unknown[0].reason) == ("broker 2 of west", "it is not alive")
        assert {one.rules for one in audit.unknown[1:]} == {("topic-racks", "topic-flush")}
        assert findings(audit, "topic-offline")[0].subject == "topic single at west"
        assert "3 of 3" not in findings(audit, "topic-under-replicated")[0].seen
        assert [one.subject for one in findings(audit, "topic-in-sync")] == ["topic pair at west"]
        assert "broker-auto-create" in audit.unknown[0].rules
        properties.write_text(right.replace("broker.rack=west-2", "broker.rack=west-1"))
        assert start_target(sites.lab, "west.kafka.2").bit
        for rule in sorted(CROWDED):
            sites.wait_until_found(rule)
        assert not findings(sites.audit(), "topic-offline")
        assert kill_target(sites.lab, "west.kafka.2").bit
    finally:
        properties.write_text(right)
        start_target(sites.lab, "west.kafka.2")
        sites.delete_topics("west", "pair", "single")


def test_a_standby_without_its_slot_is_found(sites: Audited) -> None:
    sites.set_database("west", "primary_slot_name", "")
    try:
        for rule in sorted(UNFOLLOWED):
            sites.wait_until_found(rule)
    finally:
        sites.set_database("west", "primary_slot_name", "west")


def test_a_misspelt_standby_that_nobody_is_is_found(sites: Audited) -> None:
    sites.set_database("east", "synchronous_standby_names", "FIRST 1 (wset)")
    try:
        (found,) = sites.wait_until_found("postgres-standby-streaming")
        assert found.seen == "no synchronous standby follows: west is streaming and async"
    finally:
        sites.set_database("east", "synchronous_standby_names", "FIRST 1 (west)")


def test_the_two_sites_are_compared(sites: Audited) -> None:
    sites.set_topic("west", "retention.ms", "1000000000")
    sites.set_first_broker("west", "message.max.bytes", "2000000")
    sites.set_database("west", "synchronous_commit", "remote_apply")
    try:
        seen = {rule: sites.wait_until_found(rule)[0].seen for rule in sorted(COMPARED)}
        assert seen["sites-topics"] == f"topic {TOPIC}: retention.ms is 604800000 at east and 1000000000 at west"
        assert seen["sites-brokers"] == "brokers: message.max.bytes is 1048588 at east and 1048588 or 2000000 at west"
        assert seen["sites-databases"] == "database: synchronous_commit is on at east and remote_apply at west"
    finally:
        sites.set_topic("west", "retention.ms", "604800000")
        sites.set_first_broker("west", "message.max.bytes", None)
        sites.set_database("west", "synchronous_commit", None)


@pytest.fixture(scope="module")
def wrong_servers(no_loss_profile: Audited) -> WrongServers:
    return start_wrong_servers(no_loss_profile)


def test_servers_that_were_set_up_wrongly_are_found_beside_the_right_ones(
    sites: Audited, wrong_servers: WrongServers
) -> None:
    audit = sites.audit(config=wrong_servers.config)
    wrong = {
        finding.rule for finding in audit.findings if "east" not in finding.subject or "against" in finding.subject
    }
    assert wrong >= WRONG_RULES
    of_east = [one for one in audit.findings if "of east" in one.subject or "at east" in one.subject]
    assert of_east == []
    said = sites.called(config=wrong_servers.config)
    assert said.code == 1
    assert said.out.startswith("FINDINGS ")


def test_what_nobody_answers_is_unknown_and_not_passed(sites: Audited, wrong_servers: WrongServers) -> None:
    dead = wrong_servers.silent_config
    answer = sites.called("--json", config=dead)
    assert answer.code == 4
    content = answer.answer("audit")
    assert (content["answer"], content["answered"], content["findings"]) == ("unknown", True, [])
    assert {one["subject"] for one in content["unknown"]} == {
        "Kafka of west",
        "the database of west",
        "the two sites compared",
    }
    passed = {one["rule"]: one["subjects"] for one in content["passed"]}
    assert passed["broker-auto-create"] == 3
    assert passed["postgres-fsync"] == 1
    assert "sites-databases" not in passed
    assert sites.audit(config=dead, only="east").exit_code(strict=True) == 0
    nobody = sites.audit(config=dead, only="west")
    assert (nobody.answered, nobody.answer, nobody.exit_code(strict=False)) == (False, "unknown", 4)


def test_what_a_login_may_not_see_is_unknown(sites: Audited, tmp_path: Path) -> None:
    sites.sql(
        "east",
        "create role looker login",
        "grant usage on schema zerotail to looker",
        "grant select on zerotail.rejoined to looker",
        "alter role looker set synchronous_commit = remote_apply",
    )
    try:
        config = sites.changed_configuration(as_looker(sites.lab))
        audit = sites.audit(config=config)
        unknown = {(one.subject, one.reason): set(one.rules) for one in audit.unknown}
        hidden = "pg_stat_replication hides the standbys from this user: grant pg_read_all_stats"
        primary = "the primary database of east"
        assert unknown[primary, hidden] == {"postgres-standby-streaming", "postgres-standby-slot"}
        assert unknown[primary, "synchronous_commit could not be read"] == {"postgres-synchronous-commit"}
        assert audit.exit_code(strict=False) == 4
    finally:
        sites.sql("east", "drop owned by looker", "drop role looker")


def as_looker(lab: Layout) -> Callable[[dict[str, object]], None]:
    def change(content: dict[str, object]) -> None:
        east = dsn(lab.database("east")).replace("user=postgres", "user=looker")
        content["sites"]["east"]["database"]["dsn"] = east  # type: ignore[index]

    return change


def test_every_rule_about_servers_is_shown_red_in_this_file() -> None:
    planted = {*TOPIC_FAULTS, *BROKER_FAULTS, *(fault.rule for fault in DATABASE_FAULTS)}
    planted |= DIED | CROWDED | UNFOLLOWED | COMPARED | WRONG_RULES
    planted |= {"topic-replication", "topic-min-insync-headroom", "postgres-standby-streaming"}
    assert planted == {rule.id for rule in RULES if rule.kind not in (ProducerFacts, ConsumerFacts, SparkFacts)}
