"""What a superuser changed is found, at the first segment that it touches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.journal import FIRST, POST, SECOND, SETTLE, Books, superuser
from support.spoiled import SPOILED, Spoiled
from zerotail.core.identity import PartitionNumber, StageName
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.comparison import compare_journals
from zerotail.postgres.connection import connect, session, snapshot
from zerotail.postgres.verification import Verified, find_places, verify_partition

pytestmark = pytest.mark.servers
Day = tuple[str, str, Books]


def verify(database: str, stage: StageName = SETTLE, partition: PartitionNumber = FIRST) -> Verified:
    with session(database, Deadline.after(30)) as connection, snapshot(connection):
        return verify_partition(connection, stage, partition)


@pytest.mark.parametrize(("stage", "partition"), [(SETTLE, FIRST), (SETTLE, SECOND), (POST, FIRST)])
def test_a_journal_that_nobody_touched_is_right(day: Day, stage: StageName, partition: PartitionNumber) -> None:
    _, database, books = day
    found = verify(database, stage, partition)
    assert found.fault is None
    head = books_head(database, stage, partition)
    assert (found.segments, found.records, found.chain) == head
    assert found.records == len(books.taken[stage, partition])


def books_head(database: str, stage: StageName, partition: PartitionNumber) -> tuple[int, int, str]:
    with connect(database, Deadline.after(30)) as connection:
        row = connection.execute(
            "select segment, next_position, encode(chain, 'hex') from zerotail.head "
            "where stage = %s and partition = %s",
            (stage, partition),
        ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


@pytest.mark.parametrize("spoiled", SPOILED, ids=str)
def test_each_planted_change_is_found_where_it_is(spoiled: Spoiled, copy: Callable[[], str]) -> None:
    database = copy()
    with superuser(database) as connection:
        connection.execute(spoiled.statement.encode())
    found = verify(database)
    assert found.fault is not None
    assert (found.fault.rule, found.fault.segment, found.fault.record) == (
        spoiled.rule,
        spoiled.segment,
        spoiled.record,
    )
    if spoiled.rule != "head":
        assert found.segments == spoiled.segment - 1
    assert verify(database, SETTLE, SECOND).fault is None


def test_a_changed_message_is_found_in_the_stage_that_took_it_too(copy: Callable[[], str]) -> None:
    database = copy()
    with superuser(database) as connection:
        connection.execute(SPOILED[-1].statement.encode())
    fault = verify(database, POST, FIRST).fault
    assert fault is not None
    assert (fault.rule, fault.segment) == ("chain", 1)


def test_every_stage_and_partition_is_found_and_can_be_chosen(day: Day) -> None:
    with session(day[1], Deadline.after(30)) as connection:
        assert [*find_places(connection)] == [(POST, FIRST), (SETTLE, FIRST), (SETTLE, SECOND)]
        assert [*find_places(connection, "settle")] == [(SETTLE, FIRST), (SETTLE, SECOND)]
        assert [*find_places(connection, "settle", 1)] == [(SETTLE, SECOND)]


def test_a_standby_verifies_like_its_primary(lab: Layout, day: Day) -> None:
    standby = dsn(lab.database("west")).replace("dbname=postgres", f"dbname={day[0]}")
    assert verify(standby) == verify(day[1])
    with connect(day[1], Deadline.after(30)) as here, connect(standby, Deadline.after(30)) as there:
        compared = compare_journals(here, there)
    assert [one.difference for one in compared] == [None] * 3
    assert [one.equal_segments for one in compared] == [2, 6, 5]


@pytest.mark.parametrize(
    ("statement", "segment", "columns", "what"),
    [
        ("update zerotail.segment set version = '2' where segment = 3", 3, ("version",), "they differ in version"),
        ("update zerotail.segment set counts = '{31, 19}' where segment = 1", 1, ("order",), "they differ in order"),
        ("delete from zerotail.segment where segment = 2", 2, None, "the other one with 3"),
        ("delete from zerotail.segment where segment = 6", 6, (), "only this site has it"),
        ("delete from zerotail.head where partition = 0", 0, (), "only this site has a head"),
        ("update zerotail.head set vector = '{}'", 6, ("vector",), "the heads differ in vector"),
    ],
)
def test_two_sites_that_differ_are_told_where(
    day: Day, copy: Callable[[], str], statement: str, segment: int, columns: tuple[str, ...] | None, what: str
) -> None:
    other = copy()
    with superuser(other) as connection:
        connection.execute(statement.encode())
    with connect(day[1], Deadline.after(30)) as here, connect(other, Deadline.after(30)) as there:
        (compared,) = compare_journals(here, there, "settle", 0)
        (mirrored,) = compare_journals(there, here, "settle", 0)
    assert compared.difference is not None
    assert mirrored.difference is not None
    assert compared.difference.segment == mirrored.difference.segment == segment
    assert columns is None or compared.difference.columns == columns
    assert what in compared.difference.what


def test_a_site_that_is_behind_does_not_differ(day: Day, copy: Callable[[], str]) -> None:
    other = copy()
    with superuser(other) as connection:
        connection.execute("delete from zerotail.segment where segment > 4")
        connection.execute("update zerotail.head set segment = 4 where stage = 'settle' and partition = 0")
    with connect(day[1], Deadline.after(30)) as here, connect(other, Deadline.after(30)) as there:
        (compared,) = compare_journals(here, there, "settle", 0)
    assert (compared.segments_here, compared.segments_there, compared.equal_segments) == (6, 4, 4)
    assert compared.difference is None
