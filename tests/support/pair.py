"""The warm lab's databases as a pair: what the truths need to be provoked and looked at."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import psycopg

from zerotail.core.gate import Asker, Gate, decide
from zerotail.core.identity import Lsn
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.lab.database import dsn
from zerotail.lab.fault import continue_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import Connection, answers, connect, one_row
from zerotail.postgres.gate import ask_standby, observe_asker
from zerotail.postgres.position import read_position

PATIENCE_SECONDS = 30.0
INSERT = "insert into truth values (%s)"
_numbers = itertools.count(1)


def next_number() -> int:
    """A number that no row has yet."""
    return next(_numbers)


@dataclass
class Outcome:
    """What the client of one commit saw."""

    error: BaseException | None = None
    notices: tuple[str, ...] = ()
    returned: bool = False


class Commit:
    """One row committed in a session of its own, in the background, since it may wait for ever."""

    def __init__(self, pair: Pair, setting: str = "") -> None:
        self.number = next_number()
        self.outcome = Outcome()
        self._notices: list[str] = []
        self._session = connect(pair.primary_dsn, Deadline.after(PATIENCE_SECONDS))
        self._session.add_notice_handler(lambda notice: self._notices.append(notice.sqlstate or ""))
        self.backend = int(one_row(self._session, "select pg_backend_pid()")[0])
        if setting:
            self._session.execute(setting.encode())
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session.execute(INSERT, (self.number,))
            self.outcome.returned = True
        except psycopg.Error as error:
            self.outcome.error = error
        self.outcome.notices = tuple(self._notices)
        self._session.close()

    def wait(self) -> Outcome:
        """What the client saw, once it has seen it."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the commit still waits"
        return self.outcome

    @property
    def waits(self) -> bool:
        """Whether the client still waits."""
        return self._thread.is_alive()


@dataclass(frozen=True)
class Pair:
    """East's primary and west's standby."""

    layout: Layout
    control: Connection
    """A session at the primary that looks and never waits."""

    @property
    def primary_dsn(self) -> str:
        return dsn(self.layout.database("east"))

    @property
    def standby_dsn(self) -> str:
        """West's database as east reaches it, through the link."""
        return dsn(self.layout.database("west"), seen_from="east")

    def freeze_standby(self) -> None:
        assert stop_target(self.layout, "west.postgres").bit

    def freeze_receiver(self) -> None:
        """Freeze the one process that takes the log in: the standby answers questions and falls behind."""
        with connect(dsn(self.layout.database("west")), Deadline.after(PATIENCE_SECONDS)) as standby:
            os.kill(int(one_row(standby, "select pid from pg_stat_wal_receiver")[0]), signal.SIGSTOP)

    def thaw_standby(self) -> None:
        assert continue_target(self.layout, "west.postgres").bit

    def commit(self, setting: str = "") -> Commit:
        return Commit(self, setting)

    def waiting_commit(self, setting: str = "") -> Commit:
        """A commit of which the server says that it waits for the other site."""
        commit = self.commit(setting)
        self.wait_until_waiting(commit.backend)
        return commit

    def wait_until_waiting(self, backend: int, *, for_seconds: float = 0.0) -> None:
        """Return when this backend has been waiting for the standby for so long."""
        query = (
            "select exists (select from pg_stat_activity where pid = %s and wait_event = 'SyncRep' "
            "and clock_timestamp() - query_start > make_interval(secs => %s))"
        )
        wait_until(
            f"backend {backend} waits for the standby",
            lambda: one_row(self.control, query, (backend, for_seconds))[0],
            Deadline.after(PATIENCE_SECONDS),
        )

    def wait_until_sessions_are_ended(self) -> None:
        """Return when the primary has ended every session, as it does before it recovers from a crash of one."""

        def ended() -> bool:
            try:
                self.control.execute("select 1")
            except psycopg.OperationalError:
                return True
            return False

        wait_until("the primary ends its sessions", ended, Deadline.after(PATIENCE_SECONDS))

    def visible_on_primary(self, number: int) -> bool:
        return _has(self.control, number)

    def on_standby(self, number: int) -> bool:
        """Asked of the standby directly; it must not be frozen."""
        with connect(dsn(self.layout.database("west")), Deadline.after(PATIENCE_SECONDS)) as standby:
            return _has(standby, number)

    def position(self) -> Lsn:
        """A position behind everything visible on the primary now."""
        return read_position(self.control)

    def gate(self, wanted: Lsn) -> bool:
        return gate_is_open(self.control, self.standby_dsn, wanted, Deadline.after(2))

    def wait_until_gate_open(self, wanted: Lsn) -> None:
        wait_until("the gate opens", lambda: self.gate(wanted), Deadline.after(PATIENCE_SECONDS))


def gate_is_open(primary: Connection, standby_dsn: str, wanted: Lsn, deadline: Deadline) -> bool:
    """Whether the other site has flushed everything below `wanted`. No answer is a no."""
    return ask_gate(observe_asker(primary), standby_dsn, wanted, deadline) is Gate.OPEN


def ask_gate(asker: Asker, standby_dsn: str, wanted: Lsn, deadline: Deadline) -> Gate | None:
    """What the other site's answer allows; None when it does not answer."""
    try:
        standby = connect(standby_dsn, deadline, application="zerotail gate")
    except Unavailable:
        return None
    try:
        return decide(ask_standby(standby, deadline), asker, wanted)
    except Unavailable:
        return None
    finally:
        standby.close()


def _has(connection: Connection, number: int) -> bool:
    return bool(one_row(connection, "select exists (select from truth where number = %s)", (number,))[0])


@contextmanager
def control_session(layout: Layout) -> Iterator[Connection]:
    """A session that never waits for the standby itself."""
    database = dsn(layout.database("east"))
    wait_until("the database answers", lambda: answers(database), Deadline.after(PATIENCE_SECONDS))
    with connect(database, Deadline.after(PATIENCE_SECONDS)) as control:
        control.execute("set synchronous_commit = local")
        yield control
