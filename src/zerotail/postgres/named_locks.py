"""Locks on a word, where a lock on a table would do too much: they are not in the log, so a standby knows nothing of
them, and they hold up nobody who has not asked for them.

1. `the epoch row`: who reads where the database stands holds it, shared, until the end of the transaction. Whoever
   writes `gated` takes it alone: behind everybody who may let something go because it has read `exposed`, and before
   everybody who begins later (decision 0028).
2. `the database as a whole`: whoever is about to replace a database holds it alone, from the first row of the tail that
   is kept until the server stops; whoever opens an epoch holds it, shared. Neither waits for the other: the second one
   is declined (decision 0012). It also holds in a standby, through its promotion.
"""

from __future__ import annotations

import psycopg

from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.transaction import Declined

_EPOCH_ROW = "hashtextextended('zerotail: the epoch row', 0)"
_WHOLE = "hashtextextended('zerotail: the database as a whole', 0)"
_HOLD_EPOCH = f"select pg_advisory_xact_lock_shared({_EPOCH_ROW})".encode()
_HOLDER_MILLISECONDS = 3000
"""Everybody who sends or submits waits meanwhile."""
_SILENT_MILLISECONDS = 2000
"""Whoever has the row alone and falls silent is ended by the server: a frozen operator must not stop a site."""
_TAKE_EPOCH = f"""
set local lock_timeout = {_HOLDER_MILLISECONDS};
set local idle_in_transaction_session_timeout = {_SILENT_MILLISECONDS};
select pg_advisory_xact_lock({_EPOCH_ROW})
""".encode()


def hold_epoch_row(connection: Connection) -> None:
    """Before the row is read: it does not become `gated` until this transaction has ended."""
    connection.execute(_HOLD_EPOCH)


def take_epoch_row(connection: Connection) -> None:
    """Let every transaction end that has read the row, and none read it before this one has ended."""
    try:
        connection.execute(_TAKE_EPOCH)
    except psycopg.errors.LockNotAvailable as error:
        raise Declined("a transaction that has read the epoch does not end (see pg_locks, advisory)") from error


def take_database(connection: Connection) -> bool:
    """Let nobody open an epoch here until this transaction, or the server, has ended; whether that is so."""
    return bool(one_row(connection, f"select pg_try_advisory_xact_lock({_WHOLE})")[0])


def hold_database(connection: Connection) -> None:
    """Let nobody replace this database until this transaction has ended; declined when somebody is about to."""
    if not one_row(connection, f"select pg_try_advisory_xact_lock_shared({_WHOLE})")[0]:
        raise Declined("a rejoin is about to replace this database (see pg_locks, advisory)")
