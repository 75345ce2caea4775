"""A process says what it does: written in the background, never in its way, whatever the database does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.outside import wait_for
from support.watched import Watched, make_watched
from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.deadline import Deadline
from zerotail.lab.fault import continue_target, kill_target, start_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.process import ProcessSeen, Report, read_reports, write_reports
from zerotail.running.report import Reporter

pytestmark = pytest.mark.servers

EAST = SiteName("east")
FIRST = PartitionNumber(0)


@pytest.fixture
def watched(lab: Layout, tmp_path: Path) -> Watched:
    return make_watched(lab, tmp_path)


@pytest.fixture
def reporter(watched: Watched) -> Iterator[Reporter]:
    with closing(Reporter(EAST, watched.east)) as made:
        yield made


def reports(watched: Watched) -> dict[tuple[str, str, int | None], ProcessSeen]:
    with connect(watched.east, Deadline.after(10)) as primary:
        return {(one.role, one.name, one.partition): one for one in read_reports(primary)}


def last_word(watched: Watched) -> ProcessSeen:
    (seen,) = reports(watched).values()
    return seen


def doing(watched: Watched) -> str:
    return ", ".join(f"{seen.doing} {seen.reason}".strip() for seen in reports(watched).values())


def test_the_newest_word_is_written_and_counters_are_sums(watched: Watched, reporter: Reporter) -> None:
    reporter.say("stage", "settle", FIRST, "working", applied=10, repeats=1)
    reporter.say("stage", "settle", FIRST, "working", applied=5)
    reporter.say("stage", "settle", FIRST, "waiting", "no records")
    reporter.say("watcher", "east", None, "working")
    wait_for("both are written", lambda: len(reports(watched)) == 2)
    seen = reports(watched)["stage", "settle", 0]
    assert (seen.doing, seen.reason, seen.counters) == ("waiting", "no records", {"applied": 15, "repeats": 1})
    assert ("watcher", "east", None) in reports(watched)
    reporter.say("stage", "settle", FIRST, "waiting", "no records", applied=1)
    wait_for("the sum goes on", lambda: reports(watched)["stage", "settle", 0].counters["applied"] == 16)


def test_a_sign_of_life_comes_without_a_word_and_since_stays(watched: Watched, reporter: Reporter) -> None:
    reporter.say("stage", "settle", FIRST, "working")
    wait_for("it is written", lambda: doing(watched) == "working")
    with connect(watched.east, Deadline.after(10)) as primary:
        primary.execute("update zerotail.process set seen_at = seen_at - interval '1 hour'")
    before = last_word(watched)
    wait_for("a sign of life", lambda: last_word(watched).silent_seconds < 60, 10)
    assert last_word(watched).since == before.since
    reporter.say("stage", "settle", FIRST, "waiting", "no records")
    wait_for("the change is written", lambda: doing(watched) == "waiting no records")
    assert last_word(watched).since > before.since


def test_the_last_word_is_written_by_close(watched: Watched) -> None:
    reporter = Reporter(EAST, watched.east)
    reporter.say("emitter", "bank", FIRST, "stopped", "superseded")
    reporter.close()
    assert doing(watched) == "stopped superseded"


def test_a_database_that_is_away_holds_nobody_up_and_gets_the_newest_word_when_it_is_back(
    watched: Watched, reporter: Reporter
) -> None:
    reporter.say("stage", "settle", FIRST, "working", applied=1)
    wait_for("it is written", lambda: doing(watched) == "working")
    assert kill_target(watched.lab, "east.postgres").bit
    began = time.monotonic()
    for _ in range(1000):
        reporter.say("stage", "settle", FIRST, "waiting", "the database does not answer", applied=1)
    assert time.monotonic() - began < 1.0
    assert start_target(watched.lab, "east.postgres").bit
    wait_for("the newest word is there", lambda: doing(watched) == "waiting the database does not answer")
    assert last_word(watched).counters == {"applied": 1001}


def test_closing_does_not_wait_for_a_frozen_database(watched: Watched) -> None:
    reporter = Reporter(EAST, watched.east)
    reporter.say("stage", "settle", FIRST, "working")
    wait_for("it is written", lambda: doing(watched) == "working")
    assert stop_target(watched.lab, "east.postgres").bit
    reporter.say("stage", "settle", FIRST, "stopped", "asked to end")
    began = time.monotonic()
    reporter.close()
    assert time.monotonic() - began < 1.9, "less than the writer's own patience"
    assert continue_target(watched.lab, "east.postgres").bit


def test_tables_that_are_not_there_yet_are_waited_for(watched: Watched, reporter: Reporter) -> None:
    with connect(watched.east, Deadline.after(10)) as primary:
        primary.execute("alter table zerotail.process rename to process_later")
        before = rolled_back(primary)
        reporter.say("stage", "settle", FIRST, "working")
        wait_for("it has tried in vain", lambda: rolled_back(primary) > before)
        primary.execute("alter table zerotail.process_later rename to process")
    wait_for("it is written", lambda: doing(watched) == "working")


def rolled_back(connection: Connection) -> int:
    """Transactions of this database that came to nothing."""
    connection.execute("select pg_stat_clear_snapshot()")
    return int(one_row(connection, "select xact_rollback from pg_stat_database where datname = current_database()")[0])


def test_many_threads_may_speak_at_once(watched: Watched) -> None:
    reporter = Reporter(EAST, watched.east)

    def speak(partition: int) -> None:
        for _ in range(200):
            reporter.say("stage", "settle", PartitionNumber(partition), "working", applied=1)

    threads = [threading.Thread(target=speak, args=(number,)) for number in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reporter.close()
    found = reports(watched)
    assert [found["stage", "settle", number].counters["applied"] for number in (0, 1)] == [400, 400]


def test_since_is_when_it_began_not_when_it_was_written(watched: Watched) -> None:
    def report(doing: str, for_seconds: float) -> Report:
        return Report(EAST, "stage", "settle", FIRST, 1, "host", doing, "", for_seconds, {})  # type: ignore[arg-type]

    with connect(watched.east, Deadline.after(10)) as primary:
        write_reports(primary, [report("working", 100.0)])
        first = read_reports(primary)[0]
        write_reports(primary, [report("working", 1.0)])
        again = read_reports(primary)[0]
        write_reports(primary, [report("waiting", 1.0)])
        changed = read_reports(primary)[0]
        (now,) = primary.execute("select clock_timestamp()").fetchone() or (None,)
    assert now is not None
    assert 99 < (now - first.since).total_seconds() < 130
    assert again.since == first.since
    assert 0.9 < (now - changed.since).total_seconds() < 30
