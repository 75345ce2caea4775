"""While a site drains nobody gets in, whatever the way; when whoever drains it is gone, everybody does."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from support.journal import FIRST, day_of
from zerotail.core.epoch import Phase
from zerotail.core.identity import ProducerNumber, SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import Layout
from zerotail.ports import ChangeEpoch, Done, Refused, Submit, Submitted
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.feed import number_submissions, submit
from zerotail.postgres.lineage import DRAINS, change_epoch, read_standing
from zerotail.postgres.schema import apply_schema
from zerotail.postgres.shutdown import ends_with_shutdown
from zerotail.postgres.transaction import Session
from zerotail.postgres.way_in import ShutWayIn, end_drain

pytestmark = pytest.mark.servers

EAST = SiteName("east")
SUBMISSION = "insert into zerotail.submission (producer, partition, id, value) values (%s, 0, %s, 'x')"
NUMBERED = """
insert into zerotail.instruction (producer, partition, serial, id, value)
select %s, 0, max(serial) + 1, %s, 'x' from zerotail.instruction where producer = %s and partition = 0
"""


@pytest.fixture(scope="module")
def database(warm_lab: Layout) -> str:
    return day_of(warm_lab)[1]


@pytest.fixture
def business(database: str) -> Iterator[Connection]:
    with connect(database, Deadline.after(30)) as connection:
        yield connection


@pytest.fixture
def drain(database: str, business: Connection) -> Iterator[ShutWayIn]:
    """East's way in, shut, and its epoch drains; nobody ends that but the test."""
    shut = ShutWayIn(EAST, database, 0.5)
    assert shut.shut() is None
    epoch = read_standing(business).epoch
    with closing(Session(database)) as session:
        drained = session.write(lambda c: change_epoch(c, ChangeEpoch(EAST, epoch, phase=Phase.DRAINING)))
    assert isinstance(drained, Done)
    yield shut
    shut.close()


def producer_of(connection: Connection) -> ProducerNumber:
    return ProducerNumber(one_row(connection, "select min(producer) from zerotail.instruction")[0])


def test_no_row_gets_in_while_somebody_drains_and_numbering_goes_on(
    database: str, business: Connection, drain: ShutWayIn
) -> None:
    producer = producer_of(business)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="takes nothing new until that is done"):
        business.execute(SUBMISSION, (producer, "in-1"))
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="takes nothing new until that is done"):
        business.execute(NUMBERED, (producer, "in-2", producer))
    with closing(Session(database)) as session:
        assert session.write(lambda c: submit(c, Submit(producer, FIRST, "in-3", b"x"), EAST)) == Refused(DRAINS)
        assert session.write(lambda c: number_submissions(c, producer, FIRST, 10)) == 0
    assert drain.is_shut()
    assert read_standing(business).lineage.current.phase is Phase.DRAINING


def test_a_drain_that_nobody_holds_any_more_ends_with_the_next_row(
    database: str, business: Connection, drain: ShutWayIn
) -> None:
    producer = producer_of(business)
    holder = one_row(business, "select pid from pg_stat_activity where application_name = 'zerotail drain'")
    business.execute("select pg_terminate_backend(%s)", holder)
    with closing(Session(database)) as session:
        assert isinstance(session.write(lambda c: submit(c, Submit(producer, FIRST, "in-3", b"x"), EAST)), Submitted)
    assert read_standing(business).lineage.current.phase is Phase.LIVE
    business.execute(NUMBERED, (producer, "in-4", producer))
    assert not drain.is_shut(), "the act that has lost it hears of that"


def test_a_long_transaction_that_comes_behind_a_drain_holds_nobody_up(
    database: str, business: Connection, drain: ShutWayIn
) -> None:
    producer = producer_of(business)
    epoch = read_standing(business).epoch
    drain.close()
    holders = "select count(*) from pg_stat_activity where application_name = 'zerotail drain'"
    wait_until("nobody drains any more", lambda: one_row(business, holders)[0] == 0, Deadline.after(10))
    with (
        closing(Session(database)) as ours,
        connect(database, Deadline.after(30)) as other,
        ThreadPoolExecutor() as pool,
        business.transaction(force_rollback=True),
    ):
        other.execute("set statement_timeout = '2s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            other.execute(SUBMISSION, (producer, "in-5"))
        other.execute("reset statement_timeout")
        inserted = pool.submit(business.execute, SUBMISSION, (producer, "in-6"))
        assert ours.write(end_drain) is True
        inserted.result(10)
        # It stays open, and everybody else goes on.
        other.execute("set lock_timeout = '2s'")
        with other.transaction(force_rollback=True):
            other.execute(SUBMISSION, (producer, "in-7"))
            assert isinstance(change_epoch(other, ChangeEpoch(EAST, epoch, phase=Phase.DRAINING)), Done)


def test_a_drain_waits_for_who_is_in_and_lets_nobody_else_in_meanwhile(database: str, business: Connection) -> None:
    producer = producer_of(business)
    shut = ShutWayIn(EAST, database, 0.5)
    with business.transaction(force_rollback=True):
        # The snapshot of a long transaction is no way in, either.
        business.execute("set transaction isolation level repeatable read")
        business.execute(SUBMISSION, (producer, "in-5"))
        refused = shut.shut()
        assert isinstance(refused, Refused)
        assert "a transaction that has inserted rows does not end" in refused.reason
    assert shut.shut() is None
    shut.close()


def test_a_database_of_before_is_brought_up_to_date_with_rows_that_wait(database: str, business: Connection) -> None:
    producer = producer_of(business)
    business.execute("drop trigger submission_needs_an_open_way_in on zerotail.submission")
    business.execute("alter table zerotail.submission drop column turn")
    business.execute("alter table zerotail.poison drop column at_door")
    for name in ("b", "a"):
        business.execute(SUBMISSION, (producer, f"before-{name}"))
    for _ in range(2):
        apply_schema(business)
    business.execute(SUBMISSION, (producer, "behind"))
    with closing(Session(database)) as session:
        assert session.write(lambda c: number_submissions(c, producer, FIRST, 10)) == 3
    numbered = business.execute(
        "select id from zerotail.instruction where producer = %s and id like %s or id = 'behind' order by serial",
        (producer, "before-%"),
    )
    assert [name for (name,) in numbered.fetchall()] == ["before-b", "before-a", "behind"]


@pytest.mark.parametrize(
    ("checkpoint", "redo", "replayed", "ends"),
    [
        (0x3000028, 0x3000028, 0x3000028 + 120, True),
        (0x3000028, 0x3000028, 0x3000028 + 120 + 40, False),
        (0x3000028, 0x3000000, 0x3000028 + 120, False),
        (0x3001FF0, 0x3001FF0, 0x3001FF0 + 120 + 24, True),
        (0x3FFFFF0, 0x3FFFFF0, 0x3FFFFF0 + 120 + 40, True),
        (0x3001FF0, 0x3001FF0, 0x3001FF0 + 120, False),
    ],
)
def test_a_log_ends_with_a_shutdown_when_its_checkpoint_is_one_and_nothing_follows(
    checkpoint: int, redo: int, replayed: int, ends: bool
) -> None:
    assert ends_with_shutdown(checkpoint, redo, replayed) is ends
