"""A process that stands still in the middle of a transaction does not hold up a new epoch; one that works is let be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Event, Thread

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support.epochs import open_next
from zerotail.deadline import Deadline, wait_until
from zerotail.ports import Done
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.standstill import take_locks

pytestmark = pytest.mark.servers

PATIENCE = 20.0
COUNTED = {"head": "claim", "lane": "incarnation"}


@pytest.fixture(params=["head", "lane"])
def table(request: pytest.FixtureRequest) -> str:
    """What a process writes to that stands still: a stage, or an emitter."""
    return str(request.param)


@pytest.fixture
def holder(database: str, table: str) -> Iterator[Connection]:
    """Somebody in the middle of a transaction that has moved the heads or the lanes on."""
    with connect(database, Deadline.after(PATIENCE), application="zerotail stage") as connection:
        connection.execute("insert into zerotail.lane values ('bank', 0, 0, 256, 1, 0, 0)")
        hold(connection, table)
        yield connection


def hold(connection: Connection, table: str = "head") -> None:
    connection.execute("begin")
    connection.execute(f"update zerotail.{table} set {COUNTED[table]} = {COUNTED[table]} + 1".encode())


def claims(database: str, table: str = "head") -> list[int]:
    with connect(database, Deadline.after(PATIENCE)) as connection:
        rows = connection.execute(f"select {COUNTED[table]} from zerotail.{table}".encode()).fetchall()
    return [claim for (claim,) in rows]


def test_a_silent_transaction_is_ended_and_has_not_happened(database: str, table: str, holder: Connection) -> None:
    before = claims(database, table)
    assert before
    assert isinstance(open_next(database), Done)
    with pytest.raises(psycopg.OperationalError):
        holder.execute("commit")
    assert claims(database, table) == before


def test_one_that_is_silent_in_the_middle_of_a_copy_is_ended(database: str, holder: Connection) -> None:
    with ExitStack() as broken:
        broken.enter_context(pytest.raises(psycopg.OperationalError))
        broken.enter_context(holder.cursor().copy("copy zerotail.lane from stdin"))
        assert isinstance(open_next(database), Done)


def test_one_that_works_is_waited_for(database: str) -> None:
    held, errors = Event(), []

    def work() -> None:
        with connect(database, Deadline.after(PATIENCE)) as connection:
            hold(connection)
            held.set()
            try:
                connection.execute("select pg_sleep(2)")
                connection.execute("commit")
            except psycopg.Error as error:
                errors.append(error)

    before = claims(database)
    worker = Thread(target=work)
    worker.start()
    assert held.wait(PATIENCE)
    opened = open_next(database)
    worker.join(PATIENCE)
    assert isinstance(opened, Done)
    assert errors == []
    assert claims(database) == [claim + 1 for claim in before]


@pytest.mark.parametrize("role", ["zerotail_operator", "postgres"])
def test_an_operator_may_end_what_a_writer_left(database: str, role: str, login: Callable[[str, str], str]) -> None:
    with connect(login(database, "zerotail_writer"), Deadline.after(PATIENCE)) as writer:
        hold(writer)
        assert isinstance(open_next(login(database, role)), Done)
        with pytest.raises(psycopg.OperationalError):
            writer.execute("commit")


@pytest.fixture
def login() -> Iterator[Callable[[str, str], str]]:
    """Makes a user that has a role, for the length of a test."""
    made: list[tuple[str, str]] = []

    def make(database: str, role: str) -> str:
        if role == "postgres":
            return database
        name = f"{role}_user"
        with connect(database, Deadline.after(PATIENCE)) as connection:
            connection.execute(f"create role {name} login in role {role}".encode())
        made.append((database, name))
        return make_conninfo(database, user=name)

    yield make
    for database, name in made:
        with connect(database, Deadline.after(PATIENCE)) as connection:
            assert one_row(connection, "select count(*) from pg_stat_activity where usename = %s", (name,)) == (0,)
            connection.execute(f"drop role {name}".encode())


VACUUMED = """
create table vacuumed (number int) with (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0,
                                         autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)
"""


def test_an_autovacuum_gives_way(database: str) -> None:
    with connect(database, Deadline.after(PATIENCE)) as connection:
        connection.execute(VACUUMED.encode())
        connection.execute("insert into vacuumed select generate_series(1, 200000)")
        connection.execute("delete from vacuumed")
        connection.execute("alter system set autovacuum_naptime = '1s'")
        connection.execute("select pg_reload_conf()")
        at_work = "select exists (select from pg_stat_progress_vacuum where relid = 'vacuumed'::regclass)"
        try:
            wait_until("it is vacuumed", lambda: one_row(connection, at_work)[0], Deadline.after(60))
            with connection.transaction():
                lock = b"lock table vacuumed in share mode"
                assert take_locks(connection, lock, deadline=Deadline.after(6))
        finally:
            connection.execute("alter system reset autovacuum_naptime")
            connection.execute("select pg_reload_conf()")
