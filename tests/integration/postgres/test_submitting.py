"""What `docs/submitting.md` says about bringing instructions in by SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.journal import day_of
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import Connection, connect

pytestmark = pytest.mark.servers

PAGE = (Path(__file__).parents[3] / "docs" / "submitting.md").read_text()
WAITING = "insert into zerotail.submission (producer, partition, id, value) values (%s, 0, %s, '{}') returning id"
GIVEN = "insert into zerotail.instruction (producer, partition, serial, id, value) values (%s, 0, %s, %s, '{}')"


@pytest.fixture
def database(warm_lab: Layout) -> Iterator[Connection]:
    """With producers cards (numbered by us), wires (by themselves) and a channel between stages; nothing is kept."""
    with connect(day_of(warm_lab)[1], Deadline.after(30)) as connection:
        connection.execute("begin")
        connection.execute("update zerotail.producer set serials = 'numbered' where name = 'cards'")
        connection.execute("update zerotail.producer set serials = 'given' where name = 'wires'")
        yield connection
        connection.execute("rollback")


def number(database: Connection, where: str) -> int:
    (found,) = database.execute(f"select min(producer) from zerotail.producer where {where}".encode()).fetchone() or ()
    return int(found)


def refused(database: Connection, query: str, *values: object) -> str:
    with pytest.raises(psycopg.Error) as caught, database.transaction():
        database.execute(query.encode(), values)
    return str(caught.value)


def test_the_trigger_of_the_page_brings_each_row_of_ones_own_table_once(database: Connection) -> None:
    (trigger,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    (partitions,) = database.execute(
        b"select count(*) from zerotail.head join zerotail.producer on consumer = stage where name = 'cards'"
    ).fetchone() or (0,)
    database.execute("create schema shop")
    database.execute("create table shop.payment (id bigint primary key, account text, amount bigint)")
    database.execute(trigger.replace("% 4,", f"% {partitions},").encode())
    database.execute("insert into shop.payment select n, 'account ' || n % 7, n from generate_series(1, 70) as n")
    rows = database.execute(
        b"select count(*), count(distinct (convert_from(value, 'UTF8')::jsonb ->> 'account', partition)) "
        b"from zerotail.submission where producer = (select producer from zerotail.producer where name = 'cards') "
        b"and convert_from(value, 'UTF8')::jsonb ? 'account' and id::bigint between 1 and 70"
    ).fetchone()
    assert rows == (70, 7)


def test_a_row_that_nobody_would_ever_number_is_refused(database: Connection) -> None:
    assert "wires numbers its instructions itself (serials: given)" in refused(
        database, WAITING, number(database, "name = 'wires'"), "w-1"
    )
    channel = number(database, "channel <> ''")
    for query, values in ((WAITING, (channel, "x-1")), (GIVEN, (channel, 1_000_000, "x-1"))):
        assert "is the channel" in refused(database, query, *values)
    cards = number(database, "name = 'cards'")
    assert database.execute(WAITING.encode(), (cards, "c-new")).fetchone() == ("c-new",)


def test_a_serial_that_leaves_a_gap_is_refused_where_zerotail_numbers(database: Connection) -> None:
    cards, wires = number(database, "name = 'cards'"), number(database, "name = 'wires'")
    (last,) = database.execute(
        b"select max(serial) from zerotail.instruction where producer = %s and partition = 0", (cards,)
    ).fetchone() or (0,)
    assert f"serial {last + 2} of cards would leave a gap in partition 0" in refused(
        database, GIVEN, cards, last + 2, "g-1"
    )
    two = GIVEN + ", (%s, 0, %s, 'g-3', '{}')"
    assert f"serial {last + 3} of cards" in refused(database, two, cards, last + 1, "g-2", cards, last + 3)
    database.execute(two.encode(), (cards, last + 1, "g-2", cards, last + 2))
    database.execute(GIVEN.encode(), (wires, 1_000_000, "g-4"))  # its own: the gap may be filled later
