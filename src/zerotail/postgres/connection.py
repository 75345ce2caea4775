"""Connections, and psycopg's errors in our words.

Sessions are autocommit unless a caller opens a transaction, and never show a DSN's password in an error. The deadline
is for the connection alone: whoever must not wait longer for answers either uses `transaction.session_within`, or a
`transaction.Session` with patience.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.rows import TupleRow

from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable

Connection = psycopg.Connection[TupleRow]


def connect(dsn: str, deadline: Deadline, *, application: str = "zerotail") -> Connection:
    """An autocommit session; `Unavailable` when nobody answers in time."""
    # libpq counts whole seconds and takes less than 2 for 2.
    seconds = max(2, int(deadline.seconds_left))
    try:
        return psycopg.connect(dsn, autocommit=True, connect_timeout=seconds, application_name=application)
    except psycopg.OperationalError as error:
        raise Unavailable(
            f"the database at {where(dsn)} does not answer: {_first_line(error)}", code="ZT301"
        ) from error


@contextmanager
def session(dsn: str, deadline: Deadline) -> Iterator[Connection]:
    """A session for the length of a block, with psycopg's errors translated."""
    connection = connect(dsn, deadline)
    try:
        with translated(where(dsn)):
            yield connection
    finally:
        connection.close()


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate psycopg's errors: a lost connection is `Unavailable`, an order the server declines is `Refused`."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise Unavailable(f"the database at {place} was lost: {_first_line(error)}", code="ZT302") from error
    except psycopg.Error as error:
        raise declined(place, error) from error


def declined(place: str, error: psycopg.Error) -> Refused:
    """What a server's no is to us."""
    return Refused(f"the database at {place} declined: {_first_line(error)}", code="ZT303")


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


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]
