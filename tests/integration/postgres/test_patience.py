"""A session with patience gives up on a server that stands still, whatever it was asked for when it stopped."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from zerotail import submission
from zerotail.config import load
from zerotail.core.identity import ProducerNumber, SiteName
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable, Unfinished
from zerotail.lab.database import dsn
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.layout import Layout
from zerotail.operate import adapters
from zerotail.operate.adapters import BadDayAdapters
from zerotail.ports import KeepTail, Unreachable
from zerotail.postgres import transaction
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.gate import ask_standby
from zerotail.postgres.transaction import Session
from zerotail.submission import Submitter

pytestmark = [pytest.mark.servers, pytest.mark.timeout(60)]

PATIENCE = 0.5
LAST_WORD = b"Z\x00\x00\x00\x05I"
"""`ReadyForQuery`: the answer is over."""


class Freezer:
    """Stops the server's process of a connection; all go on in the end."""

    def __init__(self) -> None:
        self.stopped: list[int] = []

    def freeze(self, connection: Connection) -> None:
        self.stopped.append(connection.info.backend_pid)
        os.kill(self.stopped[-1], signal.SIGSTOP)

    def connect(self, target: str, deadline: Deadline, *, application: str) -> Connection:
        """A connection to a server that says no more than its greeting."""
        connection = connect(target, deadline, application=application)
        self.freeze(connection)
        return connection


@pytest.fixture
def freezer() -> Iterator[Freezer]:
    one = Freezer()
    yield one
    for number in one.stopped:
        os.kill(number, signal.SIGCONT)


@contextmanager
def in_good_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PATIENCE + 10


def test_it_stands_still_behind_the_greeting(lab: Layout, freezer: Freezer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "connect", freezer.connect)
    database = Session(dsn(lab.database("east")), patience_seconds=PATIENCE)
    with in_good_time():
        assert database.read(lambda one: one_row(one, "select 1")[0]) == Unreachable()


def test_a_client_learns_in_time_that_nobody_knows(
    lab: Layout, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "_PATIENCE_SECONDS", PATIENCE)
    with Submitter(lab.path / "east" / CONFIGURATION, "east") as business:
        monkeypatch.setattr(transaction, "connect", freezer.connect)
        with in_good_time(), pytest.raises(Unavailable):
            business.submit("cards", "p-1", {"amount": 1})
        business._numbers["cards"] = ProducerNumber(1)
        with in_good_time(), pytest.raises(Unfinished):
            business.submit("cards", "p-1", {"amount": 1}, patience_seconds=PATIENCE)


def test_a_session_begins_anew_behind_an_error_that_nobody_expected(lab: Layout) -> None:
    database = Session(dsn(lab.database("east")))
    with pytest.raises(psycopg.errors.DivisionByZero):
        database.read(lambda one: one_row(one, "select 1 / 0"))
    assert database.read(lambda one: one_row(one, "select 1")[0]) == 1
    with pytest.raises(ZeroDivisionError):
        database.write(lambda _: 1 // 0)
    assert database.read(lambda one: one_row(one, "select 1")[0]) == 1
    database.close()


def test_it_stands_still_in_the_middle_of_the_work(lab: Layout, freezer: Freezer) -> None:
    database = Session(dsn(lab.database("east")), patience_seconds=PATIENCE)

    def work(connection: Connection) -> int:
        freezer.freeze(connection)
        return int(one_row(connection, "select 1")[0])

    with in_good_time():
        assert database.read(work) == Unreachable()
    database._patience_seconds = 20.0  # for a new connection of a busy machine
    assert database.read(lambda one: one_row(one, "select 1")[0]) == 1, "the next one gets a new connection"
    database.close()


def test_a_rejoin_does_not_wait_for_a_site_that_stands_still_again(
    lab: Layout, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters, "_PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(transaction, "connect", freezer.connect)
    east, west = SiteName("east"), SiteName("west")
    with closing(BadDayAdapters(load(lab.path / "east" / CONFIGURATION), east)) as own, in_good_time():
        assert own.carry_out(KeepTail(west, east)) == Unreachable()


def test_the_gate_does_not_wait_for_the_end_of_an_answer(lab: Layout) -> None:
    with losing_last_words(lab.database("west").port) as (port, lost):
        place = make_conninfo(dsn(lab.database("west")), port=port, sslmode="disable", gssencmode="disable")
        with connect(place, Deadline.after(20)) as standby:
            assert ask_standby(standby, Deadline.after(20)).in_recovery
            lost.set()
            with in_good_time(), pytest.raises(Unavailable, match="silent"):
                ask_standby(standby, Deadline.after(PATIENCE))


@contextmanager
def losing_last_words(target: int) -> Iterator[tuple[int, Event]]:
    """A way to a server, for one client, on which the last word of every answer is lost from some moment on."""
    lost = Event()

    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        while said := source.recv(65_536):
            sink.sendall(said.removesuffix(LAST_WORD) if lost.is_set() else said)
        sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        client, _ = listening.accept()
        with client, socket.create_connection(("127.0.0.1", target)) as server:
            back = Thread(target=pass_on, args=(server, client))
            back.start()
            pass_on(client, server)
            back.join()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = Thread(target=serve)
        serving.start()
        yield listening.getsockname()[1], lost
        serving.join()
