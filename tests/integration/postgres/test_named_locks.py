"""Who writes `gated` holds up nobody for long, whatever becomes of it; who opens an epoch and who replaces the database
do not do so at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.epochs import open_next
from zerotail.core.epoch import Cut, Lineage
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused as NotAllowed
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import Done, Refused
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.named_locks import take_epoch_row
from zerotail.postgres.position import read_position
from zerotail.postgres.tail import LockedDatabase

pytestmark = pytest.mark.servers

PATIENCE = 20.0


@pytest.fixture
def act(database: str) -> Iterator[Connection]:
    """Somebody who is about to write `gated`, and says nothing more."""
    connection = connect(database, Deadline.after(PATIENCE), application="zerotail")
    try:
        connection.execute("begin")
        take_epoch_row(connection)
        connection.execute("update zerotail.epoch set durability = 'gated'")
        yield connection
    finally:
        connection.close()  # its server may have ended it


@pytest.fixture
def replacing(database: str, tmp_path: Path) -> Iterator[LockedDatabase]:
    """A rejoin that has kept the tail and waits for the command that replaces the database."""
    locked = LockedDatabase(database)
    locked.keep_tail("east", Cut({}, ()), Lineage(()), tmp_path)
    yield locked
    locked.close()


def test_an_act_that_freezes_with_the_row_does_not_stop_the_site(database: str, act: Connection) -> None:
    with connect(database, Deadline.after(PATIENCE)) as reader:
        reader.execute("set lock_timeout = '15s'")
        read_standing(reader)
    with pytest.raises(psycopg.Error):
        act.execute("commit")


def test_the_standby_is_asked_as_ever_meanwhile(warm_lab: Layout, database: str, act: Connection) -> None:
    copy = make_conninfo(dsn(warm_lab.database("west")), dbname=str(conninfo_to_dict(database)["dbname"]))
    with connect(database, Deadline.after(PATIENCE)) as primary:
        primary.execute("select pg_switch_wal()")  # so that what the act has done so far is flushed and sent
        reached = read_position(primary)
    with connect(copy, Deadline.after(PATIENCE)) as standby:
        wait_until(
            "the standby has replayed it",
            lambda: one_row(standby, "select pg_last_wal_replay_lsn() - '0/0' >= %s", (reached,))[0],
            Deadline.after(PATIENCE),
        )
        standby.execute("set lock_timeout = '1s'")
        assert read_standing(standby).timeline is None


def test_nobody_opens_an_epoch_in_a_database_that_is_about_to_be_replaced(
    database: str, replacing: LockedDatabase
) -> None:
    with connect(database, Deadline.after(PATIENCE)) as connection:
        epoch = read_standing(connection).epoch
    declined = open_next(database)
    assert isinstance(declined, Refused)
    assert "replace" in declined.reason
    assert replacing.still_in(epoch)
    replacing.close()
    assert isinstance(open_next(database), Done)


def test_a_second_rejoin_does_not_take_the_database_from_the_first(
    database: str, replacing: LockedDatabase, tmp_path: Path
) -> None:
    second = LockedDatabase(database)
    try:
        with pytest.raises(NotAllowed, match="replaces it already"):
            second.keep_tail("east", Cut({}, ()), Lineage(()), tmp_path)
    finally:
        second.close()
    with connect(database, Deadline.after(PATIENCE)) as connection:
        assert replacing.still_in(read_standing(connection).epoch)
