"""A server that vanishes is noticed by whoever waits for it; one that is slow is waited for; one that declines has
answered; and what a session relies on does not depend on anybody's defaults.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support.relays import Relay, relay_to
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable, ZerotailError
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.operate import world
from zerotail.ports import Unreachable
from zerotail.postgres import vigil
from zerotail.postgres.connection import LETS_NOBODY_IN, connect, one_row, parameters, session
from zerotail.postgres.feed_arrow import read_rows
from zerotail.postgres.transaction import Session

pytestmark = [pytest.mark.servers, pytest.mark.timeout(60)]

NOTICED_SECONDS = 15.0
"""What is promised."""


@pytest.fixture
def relay(warm_lab: Layout) -> Iterator[Relay]:
    with relay_to(warm_lab.database("east").port) as one:
        yield one


def through(lab: Layout, relay: Relay) -> str:
    return make_conninfo(dsn(lab.database("east")), port=relay.port, sslmode="disable", gssencmode="disable")


def test_a_host_that_vanishes_is_noticed_by_who_has_all_the_patience_of_the_world(lab: Layout, relay: Relay) -> None:
    with closing(Session(through(lab, relay))) as database:
        assert database.read(lambda one: one_row(one, "select 1")[0]) == 1
        relay.vanish()
        began = time.monotonic()
        assert database.read(lambda one: one_row(one, "select 1")[0]) == Unreachable()
        assert time.monotonic() - began < NOTICED_SECONDS
        relay.come_back()
        assert database.read(lambda one: one_row(one, "select 1")[0]) == 1, "it goes on"


def test_each_kind_of_wait_is_freed_and_a_slow_answer_is_waited_for(
    lab: Layout, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(vigil, "ANSWER_SECONDS", 0.5)
    with closing(Session(through(lab, relay))) as database:
        assert database.read(lambda one: one_row(one, "select 1 from pg_sleep(1.5)")[0]) == 1, "slow, and there"

        def vanish_in_the_middle(connection: psycopg.Connection[Any]) -> None:
            relay.vanish()
            connection.execute("select 1")

        assert database.write(vanish_in_the_middle) == Unreachable()
    relay.come_back()
    with pytest.raises(Unavailable, match="was lost"), session(through(lab, relay), Deadline.after(20)) as connection:
        vanish_in_the_middle(connection)
    assert not vigil._watch._waits, "nobody is watched who does not wait"


@pytest.mark.parametrize("held", [True, False])
def test_who_reads_rows_as_arrow_is_freed_as_well(
    lab: Layout, relay: Relay, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(vigil, "ANSWER_SECONDS", 0.5)
    place = through(lab, relay)
    if held:
        assert list(read_rows(place, 1_000_000, 0, 1, 2)) == []
    relay.vanish()
    began = time.monotonic()
    with pytest.raises(Unavailable, match="does not answer"):
        list(read_rows(place, 1_000_000, 0, 1, 2))
    assert time.monotonic() - began < NOTICED_SECONDS - (4.0 + 4.0 - 0.3 - 0.5), "with the patience of every day"
    relay.come_back()
    assert list(read_rows(place, 1_000_000, 0, 1, 2)) == [], "it goes on"
    assert not vigil._watch._waits


def test_nobody_is_cut_who_has_left_the_block(lab: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(dsn(lab.database("east")), Deadline.after(20)) as connection:
        for _ in range(200):
            with vigil.cut_after(connection, 0.001):
                pass
        with vigil.cut_after(connection, 20):
            assert one_row(connection, "select 1")[0] == 1


def test_what_a_session_relies_on_does_not_depend_on_defaults(database: str) -> None:
    hostile = {"jit": "on", "statement_timeout": "1ms", "lock_timeout": "1ms"}
    with connect(database, Deadline.after(20)) as control:
        control.execute("create role hostile login superuser")
        for name, value in hostile.items():
            control.execute(f"alter role hostile set {name} = '{value}'".encode())
    place = make_conninfo(database, user="hostile")
    with connect(place, Deadline.after(20)) as one:
        assert [one_row(one, f"show {name}")[0] for name in hostile] == ["off", "0", "0"]
    with connect(make_conninfo(place, options="-c statement_timeout=7s"), Deadline.after(20)) as one:
        assert one_row(one, "show statement_timeout")[0] == "7s", "what the DSN says itself wins"
    given = parameters(make_conninfo(place, tcp_user_timeout=1))
    assert "tcp_user_timeout" not in given
    assert given["keepalives_idle"] <= 5


def test_who_declines_has_answered(database: str, lab: Layout) -> None:
    with connect(database, Deadline.after(20)) as control:
        control.execute("create role nobody login")
    for place, said in (
        (make_conninfo(database, dbname="nosuch"), 'database "nosuch" does not exist'),
        (make_conninfo(database, user="stranger"), 'role "stranger" does not exist'),
    ):
        with pytest.raises(ZerotailError, match=said) as raised:
            connect(place, Deadline.after(20))
        assert raised.value.code == LETS_NOBODY_IN
        assert "does not answer" not in raised.value.message
        asked = Session(place)
        assert asked.read(lambda one: one) == Unreachable()
        assert asked.silence("east").code == LETS_NOBODY_IN
    with pytest.raises(ZerotailError, match="permission denied") as raised:
        Session(make_conninfo(database, user="nobody")).read(lambda one: one_row(one, "select * from zerotail.epoch"))
    assert any(line.startswith("grant zerotail_reader to") for line in raised.value.tries)
    with (
        pytest.raises(Unavailable, match="answers, and cancelled our statement") as late,
        session(make_conninfo(database, options="-c statement_timeout=10"), Deadline.after(20)) as one,
    ):
        one.execute("select pg_sleep(5)")
    assert late.value.code == "ZT314"


def test_the_world_tells_apart_who_does_not_answer_who_declines_and_who_is_empty(database: str) -> None:
    east = SiteName("east")
    with connect(database, Deadline.after(20)) as control:
        control.execute("create role looker login")

    def code(place: str) -> str:
        silence = world._observe(east, place).silence
        assert silence is not None
        return silence.code

    assert code(make_conninfo(database, dbname="nosuch")) == LETS_NOBODY_IN
    assert code(make_conninfo(database, dbname="template1")) == "ZT315"
    assert code(make_conninfo(database, user="looker")) == "ZT303"
    assert code(make_conninfo(database, port=1)) == "ZT301"
