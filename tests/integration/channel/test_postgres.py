"""What is particular about a database as a receiver."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec import structs
from psycopg.conninfo import make_conninfo

from integration.channel.test_contract import batch, claim
from support.outside import Outside
from zerotail.channel.postgres import PostgresReceiver
from zerotail.core.gate import Release
from zerotail.core.identity import EmissionNumber
from zerotail.core.receiver import Welcome
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import Accepted, Refused
from zerotail.postgres.connection import session
from zerotail.postgres.receipt import Effect, ask_receipts

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("outside", ["postgres-R0"], indirect=True)]


def test_an_effect_that_the_database_declines_leaves_number_and_effects_as_they_were(
    outside: Outside, servers_outside: Layout
) -> None:
    lane = outside.lane()
    place = dsn(servers_outside.database("outside"))
    with session(place, Deadline.after(10)) as connection:
        connection.execute("create table if not exists booking (number bigint primary key check (number <> 3))")
    effect = Effect(b"insert into booking values (%(number)s)")
    with closing(PostgresReceiver(place, effect, receipts=True)) as sender:
        sender.claim(claim(lane))
        answer = sender.send(batch(lane, 1, 4))
        assert isinstance(answer, Refused)
        assert "booking_number_check" in answer.reason
        assert sender.claim(claim(lane, incarnation=2)) == Welcome(EmissionNumber(0), None)
        assert sender.send(batch(lane, 1, 2, incarnation=2)) == Accepted(EmissionNumber(2))
    with session(place, Deadline.after(10)) as connection:
        assert connection.execute("select number from booking order by number").fetchall() == [(1,), (2,)]


def test_who_claimed_last_stands_in_the_receipt(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    place = dsn(servers_outside.database("outside"))
    assert ask_receipts(place, [lane], "ours", 5.0) == [None]
    with closing(PostgresReceiver(place, Effect(b"select 1"), receipts=True)) as sender:
        sender.claim(structs.replace(claim(lane, epoch=513), installation="ours"))
    assert ask_receipts(place, [lane], "ours", 5.0) == [513]
    assert ask_receipts(place, [lane], "another", 5.0) == [None], "its epochs are no epochs of the other one"
    assert ask_receipts(place, [lane], "", 5.0) == [None]
    assert ask_receipts("host=127.0.0.1 port=1", [lane], "ours", 1.0) == [], "nobody is there"


def test_whatever_else_the_database_declines_holds_up_this_lane_only(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    place = dsn(servers_outside.database("outside"))
    with session(place, Deadline.after(10)) as connection:
        connection.execute("create table if not exists odd (number bigint)")
        connection.execute("alter table odd add unique (number)")
        connection.execute(
            "create table if not exists late (number bigint references odd (number) deferrable initially deferred)"
        )
    with closing(PostgresReceiver(place, Effect(b"insert into late values (%(number)s)"), receipts=True)) as sender:
        sender.claim(claim(lane))
        answer = sender.send(batch(lane, 1, 2))
        assert isinstance(answer, Refused), "what is looked at when it commits"
        with session(place, Deadline.after(10)) as connection:
            connection.execute("insert into odd values (1), (2)")
        assert sender.send(batch(lane, 1, 2)) == Accepted(EmissionNumber(2)), "and the next one is a new transaction"


@pytest.mark.parametrize("way", ["no right", "row security"])
def test_a_right_that_is_missing_there_is_an_answer_and_no_fault_of_ours(
    outside: Outside, servers_outside: Layout, way: str
) -> None:
    lane, table = outside.lane(), f"closed_{way.replace(' ', '_')}"
    place = dsn(servers_outside.database("outside"))
    role = f"{table}_sender"
    with session(place, Deadline.after(10)) as connection:
        connection.execute(f"create role {role} login".encode())
        connection.execute(f"create table {table} (number bigint)".encode())
        connection.execute(f"grant select, insert, update on zerotail_receipt to {role}".encode())
        if way == "row security":
            connection.execute(f"grant insert on {table} to {role}".encode())
            connection.execute(f"alter table {table} enable row level security".encode())
    effect = Effect(f"insert into {table} values (%(number)s)".encode())
    with closing(PostgresReceiver(make_conninfo(place, user=role), effect, receipts=True)) as sender:
        sender.claim(claim(lane))
        answer = sender.send(batch(lane, 1, 2))
        assert isinstance(answer, Refused)
        assert table in answer.reason
        with session(place, Deadline.after(10)) as connection:
            connection.execute(f"alter table {table} disable row level security".encode())
            connection.execute(f"grant insert on {table} to {role}".encode())
        assert sender.send(batch(lane, 1, 2)) == Accepted(EmissionNumber(2)), "and it goes on when it was given"


def test_a_receipt_that_is_not_there_is_no_fault_of_ours(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    place = dsn(servers_outside.database("outside"))
    elsewhere = make_conninfo(place, options="-c search_path=pg_catalog")
    with closing(PostgresReceiver(elsewhere, Effect(b"select 1"), receipts=True)) as sender:
        assert isinstance(sender.claim(claim(lane)), Refused)
        assert isinstance(sender.send(batch(lane, 1, 2)), Refused)


def test_a_statement_of_the_receivers_own_can_be_a_function(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    place = dsn(servers_outside.database("outside"))
    with session(place, Deadline.after(10)) as connection:
        connection.execute("create table if not exists total (messages bigint, bytes bigint)")
        connection.execute("insert into total values (0, 0)")
        connection.execute(
            "create or replace function book(value bytea) returns void language sql as "
            "'update total set messages = messages + 1, bytes = bytes + length(value)'"
        )
    with closing(PostgresReceiver(place, Effect(b"select book(%(value)s)"), receipts=True)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 3))
        sender.send(batch(lane, 2, 4))
    with session(place, Deadline.after(10)) as connection:
        assert connection.execute("select messages, bytes from total").fetchone() == (4, 4 * len(b"message 1"))


def test_a_statement_is_told_what_is_sent_exposed(
    outside: Outside, servers_outside: Layout, exposed_and_gated: tuple[Release, Release]
) -> None:
    lane = outside.lane()
    place = dsn(servers_outside.database("outside"))
    with session(place, Deadline.after(10)) as connection:
        connection.execute("create table if not exists flagged (number bigint, exposed boolean)")
    effect = Effect(b"insert into flagged values (%(number)s, %(exposed)s)")
    with closing(PostgresReceiver(place, effect, receipts=True)) as sender:
        sender.claim(claim(lane))
        for number, release in enumerate(exposed_and_gated, 1):
            sender.send(structs.replace(batch(lane, number, number), release=release))
    with session(place, Deadline.after(10)) as connection:
        assert connection.execute("select * from flagged order by number").fetchall() == [(1, True), (2, False)]
