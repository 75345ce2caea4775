"""A session with patience gives up on a server that stands still, whatever it was asked for when it stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from zerotail import submission
from zerotail.core.identity import ProducerNumber
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable, Unfinished
from zerotail.lab.database import dsn
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.layout import Layout
from zerotail.ports import Unreachable
from zerotail.postgres import transaction
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.transaction import Session
from zerotail.submission import Submitter

pytestmark = [pytest.mark.servers, pytest.mark.timeout(60)]

PATIENCE = 0.5


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
    assert database.read(lambda one: one_row(one, "select 1")[0]) == 1, "the next one gets a new connection"
    database.close()
