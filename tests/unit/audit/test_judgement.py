"""The answer as a whole: exit codes, what is unknown, and how it is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.command import call
from unit.audit.seen import broker, database, partition, topic
from zerotail.audit.client_file import consumer_facts
from zerotail.audit.facts import BrokerFacts, DatabaseFacts, Observed, PairFacts, SettingOverride, Subject, Unlooked
from zerotail.audit.judgement import judge
from zerotail.audit.manual import pages
from zerotail.audit.page import write_page
from zerotail.audit.rule import repair_line
from zerotail.audit.rules import RULES
from zerotail.audit.shown import audit_lines

pytestmark = pytest.mark.fast

PAGES = Path(__file__).parents[3] / "docs" / "audit"
LOSS, RISK = topic(min_insync_replicas="1"), broker(auto_create_topics_enable="true")
CAREFUL = {"enable.auto.commit": "false", "auto.offset.reset": "none", "isolation.level": "read_committed"}
CROWDED: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "c"}
GONE = Unlooked("Kafka of west", "nobody listens", (BrokerFacts,))


def plan_line(*places: tuple[int, list[int]]) -> str:
    """A plan of Kafka's tool for moving copies."""
    placed = [{"topic": "payments", "partition": number, "replicas": brokers} for number, brokers in places]
    return json.dumps({"version": 1, "partitions": placed}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("observed", "answer", "plain", "strict"),
    [
        (Observed((topic(),)), "clean", 0, 0),
        (Observed((LOSS,)), "findings", 1, 1),
        (Observed((RISK,)), "findings", 0, 1),
        (Observed((topic(),), (GONE,)), "unknown", 4, 4),
        (Observed((LOSS,), (GONE,)), "findings", 1, 1),
        (Observed((RISK,), (GONE,)), "findings", 4, 1),
        (Observed((database(fsync=None),)), "unknown", 4, 4),
        (Observed((), (GONE,), answered=False), "unknown", 4, 4),
    ],
)
def test_the_exit_code_is_0_only_when_nothing_is_wrong_and_nothing_unknown(
    observed: Observed, answer: str, plain: int, strict: int
) -> None:
    audit = judge(observed)
    assert audit.answer == answer
    assert (audit.exit_code(strict=False), audit.exit_code(strict=True)) == (plain, strict)


def test_what_could_not_be_looked_at_is_unknown_under_every_rule_for_it() -> None:
    kinds = (BrokerFacts, DatabaseFacts, PairFacts)
    audit = judge(Observed((topic(),), (Unlooked("west", "silent", kinds),)))
    assert set(audit.unknown[0].rules) == {rule.id for rule in RULES if rule.kind in kinds}
    assert not {one.rule for one in audit.passed} & set(audit.unknown[0].rules)


def test_a_subject_that_is_unknown_under_a_rule_is_not_counted_as_passed() -> None:
    audit = judge(Observed((database(), database("west", fsync=None))))
    passed = {one.rule: one.subjects for one in audit.passed}
    assert (passed["postgres-fsync"], passed["postgres-full-page-writes"]) == (1, 2)


def test_losses_are_said_before_risks() -> None:
    assert [finding.weight for finding in judge(Observed((RISK, LOSS))).findings] == ["loss", "risk"]


def test_findings_are_shown_with_everything_that_a_reader_needs() -> None:
    audit = judge(Observed((LOSS, RISK), (GONE,)))
    text = "\n".join(audit_lines(audit))
    assert text.startswith("FINDINGS     1 lose data, 1 weaken, ")
    for finding in audit.findings:
        for word in (finding.rule, finding.subject, finding.seen, finding.title, finding.repair):
            assert word in text
    assert "UNKNOWN  Kafka of west: nobody listens (6 rules)" in text


def test_one_rule_with_several_subjects_says_why_once() -> None:
    audit = judge(Observed((topic(min_insync_replicas="1"), topic(name="other", min_insync_replicas="1"))))
    text = "\n".join(audit_lines(audit))
    assert (text.count("LOSS "), text.count("    why "), text.count("    repair ")) == (1, 1, 2)


def test_one_reason_for_many_unknowns_is_one_line() -> None:
    audit = judge(Observed((topic(racks={1: "a", 2: "b"}), topic(name="other", racks={1: "a", 2: "b"}))))
    reason = "nobody knows the rack of broker 3, which is not alive (topic-racks, topic-flush)"
    assert audit_lines(audit)[2:] == [f"UNKNOWN  topic payments at east and 1 more: {reason}"]


def test_the_page_holds_what_the_screen_does_and_nothing_can_break_out_of_it(tmp_path: Path) -> None:
    audit = judge(Observed((topic(name="<script>", min_insync_replicas="1"),), (GONE,)))
    write_page(tmp_path / "audit.html", audit, datetime(2026, 1, 2, tzinfo=UTC))
    text = (tmp_path / "audit.html").read_text()
    assert "<script>" not in text
    assert "topic &lt;script&gt; at east" in text
    assert "min.insync.replicas=1" in text
    assert "nobody listens" in text
    assert "http" not in text.replace("http-equiv", "")


def test_a_name_from_outside_cannot_break_out_of_the_line_to_type() -> None:
    (found,) = judge(Observed((database(overrides=(SettingOverride("a'b\"c", None, "off"),)),))).findings
    assert found.repair.endswith("""-c 'alter role "a'\\''b""c" reset synchronous_commit'""")


def test_every_rule_has_an_id_of_its_own_and_all_its_words() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    for rule in RULES:
        for words in (rule.title, rule.looks_at, rule.why, rule.default, repair_line(rule, {})):
            assert words.strip() == words != ""
        assert rule.why.endswith(".")
        assert rule.default.endswith(".")


def test_the_pages_of_the_rules_are_as_the_rules_are() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()} == pages()


def test_files_alone_are_looked_at_without_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "producer.properties").write_text("acks=1\nenable.idempotence=true\nbuffer.memory=1\n")
    said = call("audit", "--producer", "producer.properties", "--json", folder=str(tmp_path))
    assert said.code == 1
    answer = said.answer("audit")
    assert [finding["rule"] for finding in answer["findings"]] == ["producer-acks"]
    (tmp_path / "producer.properties").write_text("acks=all\nbuffer.memory=1\n")
    assert call("audit", "--producer", "producer.properties", folder=str(tmp_path)).code == 0
    strict = call("audit", "--producer", "producer.properties", "--strict", "--html", "a.html", folder=str(tmp_path))
    assert strict.code == 1
    assert "producer-unsaid" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--producer", "nowhere.properties"), "nowhere.properties cannot be read"),
        (("--consumer", "."), "cannot be read"),
        ((), "there is no zerotail.yaml"),
        (("--record-seconds", "-1"), "-1"),
    ],
)
def test_a_wrong_call_exits_with_2(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    said = call("audit", *arguments, folder=str(tmp_path))
    assert said.code == 2
    assert message in said.err


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (broker(offsets_retention_minutes="1"), "offsets.retention.minutes=4320"),
        (broker(min_insync_replicas="1"), "min.insync.replicas=2"),
        (broker(default_replication_factor="1"), "default.replication.factor=3"),
        (topic(retention_ms="86400000"), "retention.ms=259200000"),
        (topic(min_insync_replicas="1"), "min.insync.replicas=2"),
        (topic(min_insync_replicas="3"), "min.insync.replicas=2"),
        (consumer_facts("file", CAREFUL, record_seconds=1.0), "max.poll.interval.ms=1000000 "),
        (topic(partition(in_sync="12")), " 3 "),
        (topic(partition(leader=None)), " of the topic "),
        (topic(racks=CROWDED), plan_line((0, [1, 3, 4]))),
        (topic(partition(1, leader=2), racks=CROWDED), plan_line((1, [2, 3, 4]))),
        (topic(racks={1: None, 2: None, 3: "b", 4: "c"}), plan_line((0, [1, 2, 3]))),
        (database(overrides=(SettingOverride(None, "core", "off"),)), 'alter database "core" reset'),
        (database(overrides=(SettingOverride(None, None, "off"),)), "alter role all reset"),
        (database(synchronous_standby_names=""), "west"),
        (database(synchronous_standby_names="", followers=()), "STANDBY"),
    ],
)
def test_a_repair_names_the_value_that_is_missing(subject: Subject, line: str) -> None:
    (found,) = judge(Observed((subject,))).findings
    assert line in f"{found.repair} "
