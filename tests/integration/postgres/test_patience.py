"""A session with patience gives up on a server that stands still, whatever it was asked for when it stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import Unreachable
from zerotail.postgres import transaction
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.transaction import Session

pytestmark = [pytest.mark.servers, pytest.mark.timeout(60)]

PATIENCE = 0.5


class Freezer:
    """Stops the server's process of a connection; all go on in the end."""

    def __init__(self) -> None:
        self.stopped: list[int] = []

    def freeze(self, connection: Connection) -> None:
        self.stopped.append(connection.info.backend_pid)
        os.kill(self.stopped[-1], signal.SIGSTOP)


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
    def connect_and_freeze(target: str, deadline: Deadline, *, application: str) -> Connection:
        connection = connect(target, deadline, application=application)
        freezer.freeze(connection)
        return connection

    monkeypatch.setattr(transaction, "connect", connect_and_freeze)
    database = Session(dsn(lab.database("east")), patience_seconds=PATIENCE)
    with in_good_time():
        assert database.read(lambda one: one_row(one, "select 1")[0]) == Unreachable()


def test_it_stands_still_in_the_middle_of_the_work(lab: Layout, freezer: Freezer) -> None:
    database = Session(dsn(lab.database("east")), patience_seconds=PATIENCE)

    def work(connection: Connection) -> int:
        freezer.freeze(connection)
        return int(one_row(connection, "select 1")[0])

    with in_good_time():
        assert database.read(work) == Unreachable()
    assert database.read(lambda one: one_row(one, "select 1")[0]) == 1, "the next one gets a new connection"
    database.close()
