"""The parts of the bad day, one by one: ends of logs, the tail under its lock, notes in the database."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from support.arena import Arena
from support.flow import PATIENCE_SECONDS, System, new_system
from zerotail.core.epoch import Cut, Lineage, Phase
from zerotail.core.head import Hint
from zerotail.core.identity import Epoch, Offset, PartitionNumber, ProducerNumber, Serial, SiteName, TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.end import LogEnds
from zerotail.kafka.log import TopicSettings
from zerotail.kafka.producer import RecordSender
from zerotail.lab.database import dsn
from zerotail.lab.fault import cut_link, kill_target, start_target
from zerotail.lab.layout import Layout
from zerotail.lab.link import CutMode
from zerotail.ports import Batch, ChangeEpoch, Done, LogEnd, ReadLogEnd, Refused, SendRecords, StoreStart, Unreachable
from zerotail.postgres import failover, tail
from zerotail.postgres.connection import Connection, connect, one_row, session
from zerotail.postgres.lineage import change_epoch, observe_cut, read_standing
from zerotail.postgres.tail import LockedDatabase
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers

FIRST = PartitionNumber(0)
PRODUCER = 901


@pytest.fixture(scope="module")
def warm_lab(arena: Arena) -> Layout:
    """A new lab: a tail is everything that only one database has, whoever left it there."""
    return arena.renewed()


@pytest.fixture(scope="module")
def names() -> dict[str, System]:
    return {}


@pytest.fixture
def system(lab: Layout, names: dict[str, System]) -> System:
    if not names:
        names["parts"] = new_system(lab, "parts", PRODUCER, partitions=1)
    return names["parts"]


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)


def records(*serials: int) -> Batch:
    count, numbers = len(serials), [Serial(number) for number in serials]
    return Batch([ProducerNumber(7)] * count, numbers, [Epoch(256)] * count, [bytes(8)] * count, [b"x"] * count)


def test_a_missing_topic_is_made_empty_and_its_end_is_its_last_record(lab: Layout) -> None:
    topic = TopicName("ends.513")
    ends = LogEnds(Cluster(lab.bootstrap("west")), {TopicName("ends"): TopicSettings(2, 1)})
    sender = RecordSender(Cluster(lab.bootstrap("west")))
    try:
        empty = ends.read(ReadLogEnd(topic, PartitionNumber(1)))
        assert isinstance(empty, LogEnd)
        assert (empty.hint.offset, empty.producer, empty.serial) == (0, 0, 0)
        assert isinstance(sender.send(SendRecords(topic, PartitionNumber(1), records(1, 2, 3))), Done)
        full = ends.read(ReadLogEnd(topic, PartitionNumber(1)))
        assert full == LogEnd(Hint(empty.hint.log, Offset(3)), ProducerNumber(7), Serial(3), read=2)
        kept = ends._readers[topic, PartitionNumber(1)]._committed
        assert kept is not None
        assert kept.assignment() == [], "a client that is kept asks for nothing in the background"
        assert isinstance(ends.read(ReadLogEnd(TopicName("unknown.513"), FIRST)), Unreachable)
        assert kill_target(lab, "west.kafka").bit
        assert isinstance(ends.read(ReadLogEnd(topic, FIRST)), Unreachable)
        assert start_target(lab, "west.kafka").bit
        assert ends.read(ReadLogEnd(topic, PartitionNumber(1))) == full
    finally:
        ends.close()
        sender.close()


def test_the_tail_holds_what_waits_for_the_standby_and_nobody_writes_while_it_is_kept(
    lab: Layout, system: System, tmp_path: Path
) -> None:
    east = dsn(lab.database("east"))
    with session(east, patience()) as primary:
        survived, lineage = observe_cut(primary), read_standing(primary).lineage
    assert cut_link(lab, "both", CutMode.RESET).bit
    waiting = Thread(target=insert, args=(east, 1, "on"))
    waiting.start()
    with session(east, patience()) as primary:
        wait_until("a commit waits", lambda: count_waiting(primary), patience())
    locked = LockedDatabase(east)
    kept = locked.keep_tail("east", survived, lineage, tmp_path)
    waiting.join(PATIENCE_SECONDS)
    assert (kept.instructions, kept.segments, kept.messages) == (1, 0, 0)
    (line,) = [json.loads(line) for line in Path(kept.file).read_text().splitlines()]
    assert (line["kind"], line["serial"], base64.b64decode(line["value"])) == ("instruction", 1, b"1")
    assert locked.still_in(kept.epoch)
    assert not locked.still_in(Epoch(kept.epoch + 1))
    later = Thread(target=insert, args=(east, 2, "local"))
    later.start()
    with session(east, patience()) as primary:
        wait_until("the writer waits", lambda: count_blocked(primary), patience())
        assert one_row(primary, "select count(*) from zerotail.instruction where producer = %s", (PRODUCER,)) == (1,)
    locked.close()
    later.join(PATIENCE_SECONDS)


def test_a_long_tail_may_take_longer_than_an_answer(
    lab: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_ANSWER_SECONDS", 3.0)
    monkeypatch.setattr(tail, "_SUBMISSIONS", "select pg_sleep(8)")
    locked = LockedDatabase(dsn(lab.database("east")))
    kept = locked.keep_tail("east", Cut(), Lineage(()), tmp_path)
    assert kept.submissions == 1
    assert locked.still_in(kept.epoch)
    locked.close()


def test_a_database_that_was_started_again_is_not_the_one_that_was_looked_at(lab: Layout, tmp_path: Path) -> None:
    locked = LockedDatabase(dsn(lab.database("east")))
    kept = locked.keep_tail("east", Cut(), Lineage(()), tmp_path)
    assert kill_target(lab, "east.postgres").bit
    assert start_target(lab, "east.postgres").bit
    assert not locked.still_in(kept.epoch)
    locked.close()


def test_steps_and_starts_are_stored_in_their_own_epoch_only(lab: Layout, system: System) -> None:
    database, standby = Session(dsn(lab.database("east"))), Session(dsn(lab.database("west")))
    with session(dsn(lab.database("east")), patience()) as primary:
        epoch = read_standing(primary).epoch
    step = failover.StepDone(epoch, 4, SiteName("east"), datetime.now(UTC))
    unknown = failover.StepDone(Epoch(epoch + 256), 4, SiteName("east"), datetime.now(UTC))
    hint = Hint("log", Offset(5))
    try:
        assert isinstance(database.write(lambda c: failover.record_steps(c, [step, step])), Done)
        assert database.read(lambda c: failover.read_steps(c, epoch)) == [step]
        assert isinstance(database.write(lambda c: failover.record_steps(c, [unknown])), Refused)
        assert isinstance(standby.write(lambda c: failover.record_steps(c, [step])), Refused)
        east = SiteName("east")
        stored, refused = (StoreStart(east, system.stage, FIRST, of, hint) for of in (epoch, Epoch(epoch + 256)))
        assert isinstance(database.write(lambda c: failover.store_start(c, stored)), Done)
        assert isinstance(database.write(lambda c: failover.store_start(c, refused)), Refused)
        changed = standby.write(lambda c: change_epoch(c, ChangeEpoch(SiteName("west"), epoch, phase=Phase.LIVE)))
        assert changed == Refused("the database is a standby")
    finally:
        database.close()
        standby.close()


def insert(place: str, serial: int, mode: str) -> None:
    """Insert one instruction; the session may be ended while it waits."""
    query = "insert into zerotail.instruction (producer, partition, serial, id, value) values (%s, 0, %s, %s, %s)"
    with connect(place, patience()) as connection:
        connection.execute(f"set synchronous_commit = {mode}".encode())
        try:
            connection.execute(query, (PRODUCER, serial, str(serial), str(serial).encode()))
        except psycopg.OperationalError:
            return


def count_waiting(primary: Connection) -> int:
    return int(one_row(primary, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'")[0])


def count_blocked(primary: Connection) -> int:
    return int(one_row(primary, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")[0])
