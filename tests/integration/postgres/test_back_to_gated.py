"""An epoch goes back to gated behind everything that was let go without the gate: a copy with that row is complete."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from zerotail.core.epoch import Durability
from zerotail.core.identity import Lsn, SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.ports import ChangeEpoch, Done, Refused
from zerotail.postgres import named_locks
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.lineage import change_epoch, read_standing
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers

PATIENCE = 20.0
EAST = SiteName("east")
WAITING = """
select count(*) from pg_locks where locktype = 'advisory' and not granted
   and database = (select oid from pg_database where datname = current_database())
"""


@pytest.fixture
def client(exposed: str) -> Iterator[Connection]:
    """Somebody in the middle of a transaction that has read `exposed`."""
    with connect(exposed, Deadline.after(PATIENCE), application="a client") as connection:
        connection.execute("begin")
        assert read_standing(connection).lineage.current.durability is Durability.EXPOSED
        yield connection


def change(database: str, durability: Durability) -> object:
    session = Session(database, patience_seconds=PATIENCE)
    standing = session.read(read_standing)
    wanted = ChangeEpoch(EAST, standing.epoch, durability=durability)  # type: ignore[union-attr]
    try:
        return session.write(lambda connection: change_epoch(connection, wanted))
    finally:
        session.close()


def durability_at(database: str) -> Durability:
    with connect(database, Deadline.after(PATIENCE)) as connection:
        return read_standing(connection).lineage.current.durability


def wait_until_waiting(database: str, sessions: int, gated: Future[object]) -> None:
    """Return when so many sessions wait for the row; the one that writes `gated` is among them."""
    with connect(database, Deadline.after(PATIENCE)) as control:
        wait_until(
            f"{sessions} wait",
            lambda: one_row(control, WAITING)[0] == sessions or gated.done(),
            Deadline.after(PATIENCE),
        )
    assert not gated.done()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes `gated` waits longer for readers: some connections are made meanwhile, on a busy machine."""
    longer = named_locks._TAKE_EPOCH.replace(b"lock_timeout = 3000", b"lock_timeout = 20000")
    assert longer != named_locks._TAKE_EPOCH
    monkeypatch.setattr(named_locks, "_TAKE_EPOCH", longer)


@pytest.mark.usefixtures("patient")
def test_who_has_read_exposed_ends_before_the_row_is_written(exposed: str, client: Connection) -> None:
    with ThreadPoolExecutor(1) as beside:
        gated = beside.submit(change, exposed, Durability.GATED)
        wait_until_waiting(exposed, 1, gated)
        client.execute("update zerotail.head set claim = claim + 1")
        written: Lsn = read_position(client)
        client.execute("commit")
        done = gated.result(PATIENCE)
    assert isinstance(done, Done)
    assert done.position > written
    assert durability_at(exposed) is Durability.GATED


@pytest.mark.usefixtures("patient")
def test_who_begins_meanwhile_finds_it_gated(exposed: str, client: Connection) -> None:
    with ThreadPoolExecutor(2) as beside:
        gated = beside.submit(change, exposed, Durability.GATED)
        wait_until_waiting(exposed, 1, gated)
        reader = beside.submit(durability_at, exposed)
        wait_until_waiting(exposed, 2, gated)
        client.execute("commit")
        assert reader.result(PATIENCE) is Durability.GATED
        assert isinstance(gated.result(PATIENCE), Done)


def test_one_that_does_not_end_is_let_be_and_the_epoch_stays_exposed(exposed: str, client: Connection) -> None:
    declined = change(exposed, Durability.GATED)
    assert isinstance(declined, Refused)
    assert "does not end" in declined.reason
    client.execute("commit")
    assert durability_at(exposed) is Durability.EXPOSED
    assert isinstance(change(exposed, Durability.GATED), Done)
