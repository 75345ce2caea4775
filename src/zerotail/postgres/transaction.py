"""One effect, one transaction; and what a client may conclude when it does not hear the end of it.

1. Every transaction with a site's own database commits locally (`synchronous_commit = local`): whether the other site
   has the row is the gate's question, not the commit's. It says so itself, together with BEGIN: a pooler gives each
   transaction another session, and one that commits without a flush would name a position before its commit.
2. The position of a result that has one lies behind the commit, which has a record of its own in the log: whoever asks
   the gate for it asks for the commit as well.
3. A connection lost before COMMIT was sent means that nothing happened: `Unreachable`. One lost after it means that
   nobody knows: `Indefinite`, to be found out by reading.
4. A session with patience cuts its own connection when an effect takes longer: a frozen server answers nothing, and
   the server's own time-outs do not fire then. It has no more patience for the first words on a new connection. One
   without waits as long as it takes, and no longer than the server is there (`vigil`).
5. SIGINT, SIGTERM, SIGHUP and our own, each of which ends a command by an exception, wait while COMMIT is under way:
   psycopg would turn that into a cancel, which leaves a row behind that looks finished and is not.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow

from zerotail.core.identity import Lsn
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable, first_line
from zerotail.ports import Indefinite, Refused, Result, Unreachable
from zerotail.postgres.connection import (
    APPLY,
    CANCELLED,
    LETS_NOBODY_IN,
    UNDEFINED,
    Connection,
    cancelled,
    connect,
    declined,
    one_row,
    translated,
    user_of,
    where,
)
from zerotail.postgres.position import FLUSHED
from zerotail.postgres.vigil import cut_after, cut_when_gone

T = TypeVar("T")
Work = Callable[[Connection], T]

_CONNECT_SECONDS = 5.0
_BEGIN_LOCALLY = b"begin; set local synchronous_commit = local"
_COMMIT = f"commit; {FLUSHED}".encode()
"""In one message: the position costs no journey of its own."""
OUT_OF_TIME = signal.SIGUSR2
"""To our own main thread: a deadline has passed. It means nothing to anybody else, and to a watcher Ctrl-C does."""
_HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, OUT_OF_TIME)
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)
NOT_VERIFIED = "ZT317"
NO_TABLES = "our tables are missing"
OLD_TABLES = "its tables are older than this program"
READ_ONLY = "the database is a standby"
UNVERIFIED = "was started anew, and nobody has made sure yet that the other site holds no more of its log"


class Declined(Exception):
    """A rule of the database side says no; the transaction is rolled back and the reason becomes a `Refused`."""


class Unverified(Exception):
    """The server was started anew and nobody has made sure of the other site: it counts as one that does not answer."""


class Session:
    """A connection to one database that is made when it is needed and made anew after it was lost."""

    def __init__(
        self,
        dsn: str,
        application: str = "zerotail",
        *,
        commits_locally: bool = True,
        patience_seconds: float | None = None,
        connect_seconds: float = _CONNECT_SECONDS,
    ) -> None:
        self._dsn = dsn
        self._application = application
        self._commits_locally = commits_locally
        self._patience_seconds = patience_seconds
        self._connect_seconds = connect_seconds
        self._connection: Connection | None = None
        self.lost: Unavailable | None = None
        """Of the last effect that was not answered as it should have been: what is known of it."""
        self.waits_for_life = False
        """Whether the server was found in a life that nobody has verified, since somebody looked here."""

    def read(self, work: Work[T]) -> T | Unreachable | Refused:
        """Run `work` in one snapshot; it writes nothing."""
        return self._run(work, b"begin isolation level repeatable read read only", b"commit")  # type: ignore[return-value]

    def ask(self, work: Work[T]) -> T | Unreachable | Refused:
        """Run `work`, which is one statement that writes nothing: it needs no transaction round it."""
        return self._run(work, None, None)  # type: ignore[return-value]

    def write(self, work: Work[T]) -> T | Unreachable | Indefinite | Refused:
        """Run `work` and commit it."""
        return self._run(work, _BEGIN_LOCALLY if self._commits_locally else b"begin", _COMMIT)

    def silence(self, name: str, answer: object = None, *, tries: Sequence[str] = ()) -> Unavailable:
        """What to say of the database of `name` behind an answer that is none: that it does not answer, if so."""
        if isinstance(answer, Refused):
            if answer.reason.startswith(OLD_TABLES):
                tries = APPLY
            return Unavailable(f"the database of {name} answers, and {answer.reason}.", code="ZT315", tries=tries)
        if self.lost is not None and self.lost.code in (LETS_NOBODY_IN, CANCELLED, NOT_VERIFIED):
            return Unavailable(f"{name}: {self.lost.message}.", code=self.lost.code, tries=tries)
        return Unavailable(f"the database of {name} does not answer.", code="ZT301", tries=tries)

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, work: Work[T], begin: bytes | None, commit: bytes | None) -> T | Unreachable | Indefinite | Refused:
        try:
            connection = self._connected()
        except (Unavailable, *_LOST) as error:
            self._note(error)
            self.close()
            return Unreachable()
        with self._guarded(connection):
            return self._transact(connection, work, begin, commit)

    def _transact(
        self, connection: Connection, work: Work[T], begin: bytes | None, commit: bytes | None
    ) -> T | Unreachable | Indefinite | Refused:
        try:
            if begin is not None:
                connection.execute(begin)
            result = work(connection)
        except Declined as reason:
            self._roll_back()
            return Refused(str(reason))
        except Unverified:
            self._roll_back()
            self.lost = Unavailable(f"the database at {where(self._dsn)} {UNVERIFIED}", code=NOT_VERIFIED)
            self.waits_for_life = True
            return Unreachable()
        except psycopg.errors.ReadOnlySqlTransaction as error:
            self._roll_back()
            # A trigger of ours says why itself.
            return Refused((error.diag.context and error.diag.message_primary) or READ_ONLY)
        except UNDEFINED as error:
            self._roll_back()
            has_tables = one_row(connection, "select to_regclass('zerotail.epoch') is not null")[0]
            return Refused(f"{OLD_TABLES}: {first_line(error)}" if has_tables else NO_TABLES)
        except psycopg.errors.InsufficientPrivilege as error:
            # Not an answer like the others: whoever looks again and tries again would do so for ever.
            self._roll_back()
            raise declined(where(self._dsn), error, user_of(self._dsn)) from error
        except BaseException as error:
            if self._ends_with(error, connection):
                return Unreachable()
            raise
        if commit is None:
            return result
        try:
            with signals_held_back():
                ended = connection.execute(commit)
        except BaseException as error:
            if self._ends_with(error, connection):
                return Indefinite()
            raise
        return _behind_commit(result, ended) if ended.nextset() else result

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._dsn, Deadline.after(self._connect_seconds), application=self._application)
        return self._connection

    def _guarded(self, connection: Connection) -> AbstractContextManager[None]:
        patience = self._patience_seconds
        return cut_when_gone(connection) if patience is None else cut_after(connection, patience)

    def _note(self, error: BaseException) -> None:
        """Remember what an answer that cannot say so stands for."""
        if isinstance(error, Unavailable):
            self.lost = error
        elif isinstance(error, psycopg.errors.QueryCanceled):
            self.lost = cancelled(where(self._dsn), error)
        else:
            place = where(self._dsn)
            self.lost = Unavailable(f"the database at {place} was lost: {first_line(error)}", code="ZT302")

    def _ends_with(self, error: BaseException, connection: Connection) -> bool:
        """Let the connection go, so that nothing begins inside a failed transaction; whether the error says that it was
        lost. Not every such error is an `OperationalError`: a server that ends an idle transaction says so.
        """
        lost = isinstance(error, _LOST) or (isinstance(error, psycopg.Error) and connection.closed)
        self._note(error)
        self.close()
        return lost

    def _roll_back(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.execute(b"rollback")


def _behind_commit(result: T, ended: psycopg.Cursor[TupleRow]) -> T:
    """The result with the position behind the commit, if it has one."""
    row = ended.fetchone()
    if row is None or not isinstance(result, Result) or "position" not in result.__struct_fields__:
        return result
    return msgspec.structs.replace(result, position=Lsn(max(row[0], getattr(result, "position"))))  # noqa: B009


@contextmanager
def session_within(dsn: str, deadline: Deadline, *, application: str = "zerotail") -> Iterator[Connection]:
    """A session for the length of a block, which is cut when the block is not over at the deadline."""
    connection = connect(dsn, deadline, application=application)
    try:
        with translated(where(dsn), user_of(dsn)), cut_after(connection, deadline.seconds_left):
            yield connection
    finally:
        connection.close()


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP wait for the end of the block.

    Not by a mask, which is a thread's own: with another thread there, such as the one of `cut_after`, the kernel gives
    the signal to that one, and Python runs the handler in the main thread all the same.
    """
    if current_thread() is not main_thread():
        yield  # Python runs handlers in the main thread only
        return
    came: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    # What is ignored stays so, and a handler that Python does not know could not be put back.
    handlers = {number: signal.getsignal(number) for number in _HELD_BACK}
    held = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in held:
            signal.signal(number, remember)
        yield
    finally:
        with ExitStack() as behind:
            behind.callback(_let_come, came)
            for number, handler in held.items():
                behind.callback(_put_back, number, handler)


def _put_back(number: signal.Signals, handler: Any) -> None:
    try:
        signal.signal(number, handler)
    except BaseException:  # of a handler that is back already: a signal came just now
        signal.signal(number, handler)
        raise


def _let_come(numbers: Sequence[int]) -> None:
    """All of them, although a handler may raise."""
    with ExitStack() as each:
        for number in reversed(numbers):
            each.callback(signal.raise_signal, number)
