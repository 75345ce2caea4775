"""Connections, and psycopg's errors in our words.

1. Sessions are autocommit unless a caller opens a transaction, and never show a DSN's password in an error. The
   deadline is for the connection alone: whoever must not wait longer for answers either uses
   `transaction.session_within`, or a `transaction.Session` with patience.
2. What a session relies on it sets itself, whatever the server's, the database's or the role's defaults are: nothing is
   compiled (`jit`, on by default, makes a look of 30 ms take a second), no statement is cancelled for its length. What
   the DSN says itself wins.
3. The kernel gives up on a host that acknowledges nothing within ten seconds; a server that is silent behind a kernel
   that is well is the matter of `vigil`.
4. "Does not answer" is said of what did not answer. A server that lets nobody in has answered (ZT313), and so has one
   that cancelled a statement (ZT314).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.rows import TupleRow

from zerotail.core.standby import quoted
from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable, first_line
from zerotail.postgres import vigil
from zerotail.postgres.vigil import cut_when_gone

Connection = vigil.Connection

LETS_NOBODY_IN = "ZT313"
CANCELLED = "ZT314"
UNDEFINED = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction)
"""What a server says to a program that is newer than the tables that it finds."""
APPLY = ("zerotail schema apply    # at the active site, when the programs of both sites are the new ones",)
_KEEPALIVE: Mapping[str, int] = {
    "keepalives": 1,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_GRANTS = (
    "grant zerotail_operator to {user};    # for who changes roles; in SQL, as a superuser at the primary",
    "grant zerotail_writer to {user};      # for processes and clients",
    "grant zerotail_reader to {user};      # to look",
)
_RELIED_ON = "-c jit=off -c statement_timeout=0 -c lock_timeout=0"


def parameters(dsn: str) -> dict[str, Any]:
    """What every session adds to a DSN: how a dead host is noticed, and the settings that we rely on."""
    known = conninfo.conninfo_to_dict(dsn)
    given = known.get("options") or os.environ.get("PGOPTIONS", "")  # the last one of two that say the same wins
    return {name: value for name, value in _KEEPALIVE.items() if name not in known} | {
        "options": f"{_RELIED_ON} {given}".strip()
    }


def connect(dsn: str, deadline: Deadline, *, application: str = "zerotail") -> Connection:
    """An autocommit session; `Unavailable` when nobody answers in time."""
    # libpq counts whole seconds and takes less than 2 for 2.
    seconds = max(2, int(deadline.seconds_left))
    try:
        return psycopg.connect(
            dsn, autocommit=True, connect_timeout=seconds, application_name=application, **parameters(dsn)
        )
    except psycopg.OperationalError as error:
        raise _no_session(dsn, error) from error


def _no_session(dsn: str, error: psycopg.OperationalError) -> Unavailable:
    """A server that says why it lets nobody in has answered; libpq quotes it behind the severity."""
    _, fatal, said = str(error).partition("FATAL:")
    if not fatal:
        return Unavailable(f"the database at {where(dsn)} does not answer: {first_line(error)}", code="ZT301")
    reason = said.strip().splitlines()[0]
    return Unavailable(f"the database at {where(dsn)} answers, and lets nobody in: {reason}", code=LETS_NOBODY_IN)


@contextmanager
def session(dsn: str, deadline: Deadline) -> Iterator[Connection]:
    """A session for the length of a block, with psycopg's errors translated."""
    connection = connect(dsn, deadline)
    try:
        with translated(where(dsn), user_of(dsn)), cut_when_gone(connection):
            yield connection
    finally:
        connection.close()


@contextmanager
def translated(place: str, user: str = "USER") -> Iterator[None]:
    """Translate psycopg's errors: a lost connection is `Unavailable`, an order the server declines is `Refused`."""
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise cancelled(place, error) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise Unavailable(f"the database at {place} was lost: {first_line(error)}", code="ZT302") from error
    except psycopg.Error as error:
        raise declined(place, error, user) from error


def declined(place: str, error: psycopg.Error, user: str = "USER") -> Refused:
    """What a server's no is to us; for a right that is missing, with the line that gives it."""
    tries: tuple[str, ...] = ()
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        tries = tuple(line.format(user=user) for line in _GRANTS)
    elif isinstance(error, UNDEFINED):
        tries = APPLY
    return Refused(f"the database at {place} declined: {first_line(error)}", code="ZT303", tries=tries)


def cancelled(place: str, error: psycopg.Error) -> Unavailable:
    """It answered: a time-out of its own, an operator, or the log that a standby applies ended our statement."""
    return Unavailable(
        f"the database at {place} answers, and cancelled our statement: {first_line(error)}", code=CANCELLED
    )


@contextmanager
def snapshot(connection: Connection) -> Iterator[Connection]:
    """Everything inside the block is read of one moment and nothing is written; a standby can do that, too."""
    with connection.transaction():
        connection.execute(b"set transaction isolation level repeatable read read only")
        yield connection


def one_row(connection: Connection, query: str, parameters: tuple[Any, ...] = ()) -> TupleRow:
    """The single row of a query that always has one."""
    row = connection.execute(query.encode(), parameters).fetchone()
    if row is None:
        raise Refused(f"no row where one must be: {query}")
    return row


def answers(dsn: str) -> bool:
    """Whether the database accepts a session now."""
    try:
        connect(dsn, Deadline.after(2)).close()
    except Unavailable:
        return False
    return True


def where(dsn: str) -> str:
    """Host and port of a DSN; nothing else of it is ever shown."""
    known = conninfo.conninfo_to_dict(dsn)
    return f"{known.get('host', 'localhost')}:{known.get('port', 5432)}"


def user_of(dsn: str) -> str:
    """The user that a DSN names, as SQL takes it; `USER` where it leaves that to libpq."""
    user = str(conninfo.conninfo_to_dict(dsn).get("user") or "")
    return quoted(user) if user else "USER"


def address_of(dsn: str) -> tuple[str, int]:
    """Host, or folder of sockets, and port of the first server that a DSN names."""
    known = conninfo.conninfo_to_dict(dsn)
    host = str(known.get("hostaddr") or known.get("host") or "localhost").split(",")[0]
    return host, int(str(known.get("port") or 5432).split(",")[0])
