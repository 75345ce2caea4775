"""A primary comes back as it was a while ago, on the same timeline: the other site holds more of the log than it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from psycopg.conninfo import make_conninfo

from support.arena import Arena
from support.rollback import roll_back, snapshot
from support.standings import EAST, WEST
from zerotail.core.gate import GateAnswer
from zerotail.core.life import Check
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Broken
from zerotail.flow.gate import pass_gate
from zerotail.flow.life import verify_life
from zerotail.kafka.cluster import Cluster
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import AskGate, PositionRead, ReadPosition
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.promotion import promote
from zerotail.postgres.synchronous import wait_until_streaming
from zerotail.running.upstream import find_lost_end, stop_receiver
from zerotail.wiring import AdapterSettings, SiteAdapters, run_to_end

pytestmark = pytest.mark.servers
_SECONDS = 30.0
_FLUSHED = "select (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint"
_APPLIED = "select (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint"


@contextmanager
def rolled_back(lab: Layout, files: int) -> Iterator[SiteAdapters]:
    """East's processes while west has so many whole files of the log more than east's database, and some bytes."""
    east, west = dsn(lab.database("east")), dsn(lab.database("west"))
    with snapshot(lab, "east") as kept:
        with session(east, Deadline.after(_SECONDS)) as primary:
            wait_until_streaming(primary, "west", Deadline.after(_SECONDS))
            reached = write_log(primary, files)
        with session(west, Deadline.after(_SECONDS)) as standby:
            wait_until("west has it", lambda: one_row(standby, _APPLIED)[0] >= reached, Deadline.after(_SECONDS))
        roll_back(lab, "east", kept)
    with session(east, Deadline.after(_SECONDS)) as primary:
        assert one_row(primary, _FLUSHED)[0] < reached
    through_the_link = dsn(lab.database("west"), seen_from="east")
    with closing(SiteAdapters(AdapterSettings(EAST, east, through_the_link, Cluster("127.0.0.1:1")))) as processes:
        yield processes


def write_log(primary: Connection, files: int, *, again: bool = False) -> int:
    """Write some log, and go on to a new file so often; how far it reaches."""
    if again:
        primary.execute("drop table if exists later")
    primary.execute("create table later as select generate_series(1, 5000) as number")
    for _ in range(files):
        primary.execute("select pg_switch_wal()")
        primary.execute("insert into later values (0)")
    return int(one_row(primary, _FLUSHED)[0])


def test_nothing_leaves_of_a_log_that_has_lost_its_end(arena: Arena) -> None:
    lab = arena.renewed()
    with rolled_back(lab, 0) as east:
        # As if the server had not been started for it: a machine that is put back with its memory has one life.
        with session(dsn(lab.database("east")), Deadline.after(_SECONDS)) as primary:
            primary.execute("update zerotail.life set started_at = pg_postmaster_start_time()")

        def leaves() -> object:
            here = east.carry_out(ReadPosition())
            assert isinstance(here, PositionRead)
            return run_to_end(pass_gate(here.standing, here.position), east)

        # West's receiver is let in: it begins with the file, and so far the two are the same.
        with pytest.raises(Broken, match=r"holds the log up to \d+, and here it ends at \d+") as found:
            wait_until("something leaves", leaves, Deadline.after(_SECONDS))
        assert found.value.code == "ZT416"
        # It is seen for a moment only; so it is said for everybody, and nothing is taken in any more.
        here = east.carry_out(ReadPosition())
        assert isinstance(here, PositionRead)
        assert here.standing.waits_for_life
        assert here.nonce


def test_it_is_not_verified_however_often_it_is_asked(arena: Arena) -> None:
    lab = arena.renewed()
    with rolled_back(lab, 0) as east:
        wait_until(
            "west is seen ahead", lambda: run_to_end(verify_life(), east) is Check.AHEAD, Deadline.after(_SECONDS)
        )
        with session(dsn(lab.database("east")), Deadline.after(_SECONDS)) as primary:
            # Its own log goes on, and passes the place up to which west holds the other one.
            while one_row(primary, _FLUSHED)[0] < east.carry_out(AskGate()).flushed:
                write_log(primary, 0, again=True)
        deadline, found = Deadline.after(3), set()
        while deadline.seconds_left:
            found.add(run_to_end(verify_life(), east))
        here = east.carry_out(ReadPosition())
        assert isinstance(here, PositionRead)
        assert (Check.SOUND in found, here.standing.waits_for_life) == (False, True)


def test_a_receiver_that_is_turned_away_at_each_attempt_confirms_nothing(arena: Arena) -> None:
    with rolled_back(arena.renewed(), 3) as east:
        deadline, said = Deadline.after(1.5), []
        while deadline.seconds_left:
            answer = east.carry_out(AskGate())
            assert isinstance(answer, GateAnswer)
            said.append((answer.timeline, answer.flushed))
    assert set(said) == {(0, 0)}


def test_the_standby_stops_receiving_such_a_log_and_can_be_promoted(arena: Arena) -> None:
    """By a user with the role that the schema gives to processes, and no more."""
    lab = arena.renewed()
    with session(dsn(lab.database("east")), Deadline.after(_SECONDS)) as primary:
        primary.execute("create role bea_emits login in role zerotail_writer")
    with rolled_back(lab, 0) as east:
        there, here = (make_conninfo(dsn(lab.database(site)), user="bea_emits") for site in ("west", "east"))
        west = AdapterSettings(WEST, there, here, Cluster("127.0.0.1:1"))
        lost = wait_until("it is noticed", lambda: find_lost_end(west), Deadline.after(_SECONDS))
        assert re.fullmatch(r"the other site's log ends at \d+, and west holds it up to \d+", lost.why)
        assert stop_receiver(west, lost) == (
            f"{lost.why}: its log is received no more; zerotail takeover run --to west",
            True,
        )
        held = east.carry_out(AskGate())
        with session(dsn(lab.database("east")), Deadline.after(_SECONDS)) as primary:
            primary.execute("set synchronous_commit = local")
            while one_row(primary, _FLUSHED)[0] < held.applied + (1 << 20):
                write_log(primary, 0, again=True)
        after = east.carry_out(AskGate())
        assert (after.applied, after.timeline) == (held.applied, 0), "nothing came in any more"
    promote(dsn(lab.database("west")), Deadline.after(_SECONDS))
    with session(dsn(lab.database("west")), Deadline.after(_SECONDS)) as promoted:
        assert one_row(promoted, "select count(*) from later") == (5000,)


def test_a_standby_goes_on_receiving_a_log_that_is_whole(lab: Layout) -> None:
    west = AdapterSettings(WEST, dsn(lab.database("west")), dsn(lab.database("east")), Cluster("127.0.0.1:1"))
    assert [find_lost_end(west) for _ in range(5)] == [None] * 5
    east = AdapterSettings(EAST, dsn(lab.database("east")), dsn(lab.database("west")), Cluster("127.0.0.1:1"))
    assert find_lost_end(east) is None
