"""Positions: they cover what was written, commit included, and an idle primary's standby confirms them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support.journal import day_of
from support.pair import gate_is_open
from support.standings import EAST, WEST
from zerotail.core.gate import GateAnswer
from zerotail.core.identity import Lsn
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.lab.database import dsn
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout
from zerotail.ports import Done, EndRead, PositionRead, ReadEnd, ReadPosition, Refused
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.gate import ask_standby
from zerotail.postgres.look import observe_database
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import READ_ONLY, Session
from zerotail.wiring import AdapterSettings, SiteAdapters

pytestmark = pytest.mark.servers
FILE_BYTES = 16 << 20


def test_the_position_of_a_write_lies_behind_its_commit(lab: Layout) -> None:
    taken: list[Lsn] = []

    def write(connection: Connection) -> Done:
        connection.execute("create table if not exists placed (number int)")
        connection.execute("insert into placed values (1)")
        taken.append(read_position(connection))
        return Done(taken[-1])

    database = Session(dsn(lab.database("east")))
    done = database.write(write)
    database.close()
    assert isinstance(done, Done)
    # The record of a commit takes at least 34 bytes.
    assert done.position >= taken[-1] + 34


def test_where_the_own_log_ends_is_one_question(lab: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wait at the gate asks it, under load of every hundred messages of every lane."""
    name, database, _ = day_of(lab)
    asked: list[object] = []
    with closing(SiteAdapters(AdapterSettings(EAST, database, "", Cluster("127.0.0.1:1")))) as east:
        before = east.carry_out(ReadPosition())
        execute = psycopg.Connection.execute

        def heard(connection: Connection, question: bytes, *rest: Any) -> Any:
            asked.append(question)
            return execute(connection, question, *rest)

        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Connection, "execute", heard)
            found = east.carry_out(ReadEnd())
    assert isinstance(before, PositionRead)
    assert isinstance(found, EndRead)
    assert (found.asker, found.position >= before.position) == (before.standing.asker, True)
    assert len(asked) == 1
    standby = make_conninfo(dsn(lab.database("west")), dbname=name)
    with closing(SiteAdapters(AdapterSettings(WEST, standby, "", Cluster("127.0.0.1:1")))) as west:
        wait_until(
            "the standby says that it is one",
            lambda: west.carry_out(ReadEnd()) == Refused(READ_ONLY),
            Deadline.after(30),
        )


def test_a_write_is_on_the_disk_whatever_session_a_pooler_gives_it(lab: Layout) -> None:
    database = Session(make_conninfo(dsn(lab.database("east")), options="-c synchronous_commit=off"))

    def write(connection: Connection) -> Done:
        connection.execute("create table if not exists placed (number int)")
        connection.execute("insert into placed values (1)")
        assert one_row(connection, "show synchronous_commit") == ("local",)
        return Done(read_position(connection))

    for _ in range(2):
        done = database.write(write)
        assert isinstance(done, Done)
        assert isinstance(database.read(lambda connection: connection.execute("select 1").rowcount), int)
        # What a pooler does between two transactions of a client, at most.
        assert database._connection is not None
        database._connection.execute("discard all")
    database.close()


def read_at_the_beginning(primary: Connection, read: Callable[[], Lsn]) -> Lsn:
    """What `read` finds while the log stands at the beginning of a new file and nobody writes."""

    def found() -> Lsn | None:
        primary.execute("create table if not exists placed (number int)")
        primary.execute("select pg_switch_wal()")
        position = read()
        (raw,) = one_row(primary, "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
        return position if raw % FILE_BYTES == 40 else None

    primary.execute("set synchronous_commit = local")
    return wait_until("nobody else writes", found, Deadline.after(30))


def test_the_position_behind_a_new_file_of_the_log_is_confirmed_while_nothing_is_written(lab: Layout) -> None:
    with session(dsn(lab.database("east")), Deadline.after(30)) as primary:
        position = read_at_the_beginning(primary, lambda: read_position(primary))
        assert position % FILE_BYTES == 0
        standby = dsn(lab.database("west"), seen_from="east")
        wait_until(
            "it is confirmed", lambda: gate_is_open(primary, standby, position, Deadline.after(2)), Deadline.after(8)
        )


def test_status_asks_the_gate_for_such_a_position_too(lab: Layout) -> None:
    east = dsn(lab.database("east"))
    with session(east, Deadline.after(30)) as primary:
        position = read_at_the_beginning(primary, lambda: observe_database(east, Deadline.after(10)).position)
    assert position % FILE_BYTES == 0


def test_a_standby_that_starts_again_confirms_what_it_holds_while_nothing_is_written(lab: Layout) -> None:
    east, west = dsn(lab.database("east")), dsn(lab.database("west"))
    with session(east, Deadline.after(30)) as primary:
        primary.execute("create table if not exists placed (number int)")
        primary.execute("insert into placed values (1)")
        position = read_position(primary)
    assert position % FILE_BYTES > 0, "a receiver begins with the file"
    assert kill_target(lab, "west.postgres").bit
    assert start_target(lab, "west.postgres").bit

    def first_answer() -> GateAnswer | None:
        with session(west, Deadline.after(10)) as standby:
            answer = ask_standby(standby, Deadline.after(10))
        return answer if answer.timeline else None

    answer = wait_until("it receives the log", first_answer, Deadline.after(30))
    assert answer.flushed >= position
