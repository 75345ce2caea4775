"""`zerotail poison` on real Kafka and PostgreSQL: one partition stops, the other goes on, the operator decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.command import Said, call
from support.epochs import live_for_ever
from support.flow import EAST, PATIENCE_SECONDS, System
from support.journal import new_database
from support.outside import wait_for
from zerotail.core.head import first_head
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName, Timeline, epoch_of
from zerotail.core.poison import Poison
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.failover.replay import Replay
from zerotail.flow.produce import produce
from zerotail.flow.stage import run_stage
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import Feed, JournalRead, ReadJournal, RecordPoison
from zerotail.postgres.connection import session
from zerotail.postgres.journal import create_head, find_head
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.schema import apply_schema
from zerotail.wiring import AdapterSettings, SiteAdapters

FIRST, SECOND = PartitionNumber(0), PartitionNumber(1)
CARDS, WIRES = ProducerNumber(1), ProducerNumber(2)
NO_AMOUNT = b'{"account": "account 1", "amount": "eleven \\u001b[31m"}'
NO_JSON = b'{"account": "account 2", "amount": 12'


@dataclass(frozen=True)
class Own(System):
    """A small system in a database of its own."""

    database: str
    standby: str

    @property
    def adapters(self) -> AdapterSettings:
        return AdapterSettings(EAST, self.database, self.standby, Cluster(self.lab.bootstrap("east")))

    def submit(self, producer: ProducerNumber, partition: PartitionNumber, value: bytes) -> Serial:
        """One more instruction."""
        with session(self.database, Deadline.after(PATIENCE_SECONDS)) as primary:
            row = primary.execute(
                "insert into zerotail.instruction (producer, partition, serial, id, value) "
                "select %s, %s, n, n || '/' || %s, %s from (select coalesce(max(serial), 0) + 1 as n "
                "from zerotail.instruction where producer = %s and partition = %s) as last returning serial",
                (producer, partition, partition, value, producer, partition),
            ).fetchone()
        assert row is not None
        return Serial(row[0])

    def vector(self, partition: PartitionNumber) -> dict[int, int]:
        """How far a partition has come."""
        with session(self.database, Deadline.after(PATIENCE_SECONDS)) as primary:
            head = find_head(primary, self.stage, partition)
        assert head is not None
        return {int(producer): int(serial) for producer, serial in head.vector.items()}

    def say(self, *arguments: str, at: str | None = None) -> Said:
        """A `poison` command in this database."""
        return call("poison", *arguments, "--dsn", at or self.database)

    def waiting(self) -> list[dict[str, Any]]:
        """What `poison list` shows."""
        records: list[dict[str, Any]] = self.say("list", "--json").answer("poison-list")["records"]
        return records

    def stopped_at(self, serial: Serial) -> bool:
        """Whether the partition waits for a word on this record of the cards."""
        return [(one["producer"], one["serial"], one["decision"]) for one in self.waiting()] == [(CARDS, serial, "")]

    def at_work(self) -> Any:
        """Producers and stages of both partitions."""
        stories: list[Callable[[], Any]] = []
        for number in (FIRST, SECOND):
            stories += [
                partial(produce, Feed(producer, self.topic, number, self.stage), EAST) for producer in (CARDS, WIRES)
            ]
            stories.append(partial(run_stage, self.stages[number], EAST))
        return self.running(*stories)


@pytest.fixture
def system(lab: Layout) -> Own:
    name, database = new_database(lab)
    standby = dsn(lab.database("west")).replace("dbname=postgres", f"dbname={name}")
    own = Own(lab, f"poison-{name}", (CARDS, WIRES), 2, database, standby)
    create_topic(admin_client(Cluster(lab.bootstrap("east"))), own.topic, TopicSettings(2, 1))
    with session(database, Deadline.after(PATIENCE_SECONDS)) as primary:
        apply_schema(primary)
        primary.execute(
            "insert into zerotail.epoch (epoch, site, timeline, durability, phase) "
            "values (%s, 'east', %s, 'gated', 'live')",
            (epoch_of(1, 0), Timeline(current_timeline(primary))),
        )
        live_for_ever(primary)
        for producer, called in ((CARDS, "cards"), (WIRES, "wires")):
            primary.execute(
                "insert into zerotail.producer (producer, name, topic, consumer) values (%s, %s, %s, %s)",
                (producer, called, own.topic, own.stage),
            )
        for number in (FIRST, SECOND):
            create_head(primary, own.stage, number, own.producers)
    return own


def words(system: Own, serial: Serial, value: bytes) -> tuple[str, ...]:
    """Everything behind the verb of a decision."""
    return (system.stage, "0", "cards", str(serial), "--digest", digest_of(value).hex(), "--by", "anna")


@pytest.mark.nightly
def test_one_partition_stops_the_other_goes_on_and_every_decision_is_carried_out(system: Own, tmp_path: Path) -> None:
    system.insert(10)
    bad = system.submit(CARDS, FIRST, NO_AMOUNT)
    worse = system.submit(CARDS, FIRST, NO_JSON)
    system.insert(10)
    skip, replace = words(system, bad, NO_AMOUNT), words(system, worse, NO_JSON)
    with system.at_work() as ended:
        wait_for("the first partition has stopped", lambda: system.stopped_at(bad))
        wait_for("the second one has everything", lambda: system.vector(SECOND) == {CARDS: 20, WIRES: 20})
        assert system.vector(FIRST)[CARDS] == bad - 1
        (one,) = system.waiting()
        assert (one["stage"], one["partition"], one["producer_name"]) == (system.stage, 0, "cards")
        assert one["digest"] == digest_of(NO_AMOUNT).hex()
        assert one["value"] == NO_AMOUNT.decode()
        assert "TypeError" in one["reason"]
        assert one["attempts"] == 1
        shown = system.say("list")
        assert shown.code == 1
        assert f"zerotail poison skip {' '.join(skip).replace('anna', 'NAME')}" in shown.out
        assert "\x1b" not in shown.out
        assert system.say("list", at=system.standby).code == 1, "a standby answers, too"

        assert system.say("retry", *skip).code == 0
        wait_for("it has failed again", lambda: system.waiting()[0]["attempts"] == 2)

        refused(system.say("skip", *skip, "--json", at=system.standby), "standby")
        other = (*skip[:5], digest_of(b"another").hex(), *skip[6:])
        refused(system.say("skip", *other, "--json"), "not the one that you saw")
        refused(system.say("skip", *replace, "--json"), "has not stopped at serial")
        refused(system.say("skip", *skip[:4], "--by", "anna", "--json"), "bound to a digest", code="ZT704")
        assert system.waiting()[0]["decision"] == ""

        done = system.say("skip", *skip, "--json")
        assert done.answer("poison-decide")["changed"] is True
        again = system.say("skip", *skip, "--json")
        assert (again.code, again.answer("poison-decide")["changed"]) == (0, False)
        refused(system.say("retry", *skip, "--json"), "skip by anna")

        wait_for("it stops at the next one", lambda: system.stopped_at(worse))
        assert "DecodeError" in system.waiting()[0]["reason"]
        file = tmp_path / "value.json"
        file.write_bytes(NO_JSON)
        assert system.say("replace", *replace, "--value", str(file)).code == 2
        file.write_text(json.dumps({"account": "account 2", "amount": 12}) + "\n")
        assert system.say("replace", *replace, "--value", str(file)).code == 0
        wait_for("everything is taken", lambda: system.vector(FIRST) == {CARDS: 22, WIRES: 20})
        assert ended == []
    assert system.say("list").out == "No partition waits for a decision.\n"
    refused(system.say("skip", *replace, "--json"), "taken meanwhile: replace by anna")
    decided = system.say("list", "--all", "--json").answer("poison-list")["records"]
    assert [(one["decision"], one["decided_by"], one["taken"]) for one in decided] == [
        ("skip", "anna", True),
        ("replace", "anna", True),
    ]
    require_effects(system)
    assert call("journal", "verify", "--dsn", system.database).code == 0
    found = call("reconcile", "--dsn", system.database, "--alone", "--json").answer("reconcile")
    assert found["ok"], found
    assert (found["found"]["rows"], found["found"]["applied"], found["found"]["waiting"]) == (82, 82, 0)


def refused(said: Said, reason: str, code: str = "ZT703") -> None:
    assert said.code == 3, said
    error = said.answer("error")
    assert reason in error["message"], error
    assert error["code"] == code


def require_effects(system: Own) -> None:
    """The skipped record did nothing, the replaced one what its replacement says, and a replay agrees."""
    own = SiteAdapters(system.adapters)
    try:
        read = own.carry_out(ReadJournal(system.stage, FIRST, first_head(epoch_of(1, 0), ()).segment, 1000))
    finally:
        own.close()
    assert isinstance(read, JournalRead)
    replay = Replay(system.stages[FIRST], first_head(epoch_of(1, 0), system.producers))
    for segment, values in zip(read.segments, read.values, strict=True):
        replay.apply(segment, values)
    assert replay.head.chain == read.head.chain
    with session(system.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        rows = primary.execute(
            "select key, value from zerotail.state where stage = %s and partition = 0", (system.stage,)
        ).fetchall()
    assert dict(rows) == replay.state
    # Of each producer the amounts 1 to 10 and the rest of its serials; of the cards 11 is skipped, 12 replaced by 12.
    cards = sum(range(1, 23)) - 11
    wires = sum(range(1, 21))
    assert sum(json.loads(value) for _, value in rows) == cards + wires


@pytest.mark.servers
def test_whoever_was_replaced_takes_no_decision_back(system: Own) -> None:
    bad = system.submit(CARDS, FIRST, NO_JSON)
    with system.at_work():
        wait_for("the partition has stopped", lambda: system.stopped_at(bad))
    with session(system.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        head = find_head(primary, system.stage, FIRST)
    assert head is not None
    assert system.say("retry", *words(system, bad, NO_JSON)).code == 0
    own = SiteAdapters(system.adapters)
    poison = Poison(CARDS, bad, head.next_position, digest_of(NO_JSON), "late")
    late = RecordPoison(StageName(system.stage), FIRST, head.token, poison)
    try:
        with session(system.database, Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute("update zerotail.head set claim = claim + 1 where partition = 0")
        answer = own.carry_out(late)
    finally:
        own.close()
    assert answer.reason == "the head has moved"
    assert system.waiting()[0]["decision"] == "retry"


@pytest.mark.servers
def test_a_wrong_call_says_what_is_wrong(tmp_path: Path) -> None:
    nobody = ("--dsn", "host=127.0.0.1 port=1")
    record = ("settle", "0", "cards", "7")
    assert call("poison", "list", *nobody).code == 4
    assert call("poison", "list", *nobody, "--site", "east").code == 2
    assert call("poison", "skip", *record, *nobody).code == 2, "nobody decides"
    assert call("poison", "skip", *record, "--by", "anna", "--digest", "12", *nobody).code == 2
    assert call("poison", "skip", *record[:3], "0", "--by", "anna", "--confirm", *nobody).code == 2
    assert call("poison", "skip", *record, "--by", "anna", "--confirm", *nobody).code == 4
    replace = ("poison", "replace", *record, "--by", "anna", "--confirm", *nobody, "--json", "--value")
    assert call(*replace, str(tmp_path / "nothing")).answer("error")["code"] == "ZT705"
    assert call(*replace, "-").answer("error")["code"] == "ZT705", "an empty input is no JSON"
