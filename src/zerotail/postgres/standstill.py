"""Locks that are not refused by a process that stands still.

A process that freezes in the middle of a transaction (a paused machine, a long pause of its collector) holds its locks
for as long as it pleases, and its server waits for its next word. Whoever changes the roles of the sites does not:
sessions that kept silent for a while in a transaction with locks on our tables are ended. Nothing is lost by that. What
was not committed did not happen, and the process finds out when it goes on.

Who may not end the session in question (it is a superuser's, and we are none) waits like everybody.
"""

from __future__ import annotations

import psycopg

from zerotail.postgres.connection import Connection

_LOCK_MILLISECONDS = 500
_SILENT_MILLISECONDS = 1000
_END = f"""
select pg_terminate_backend(pid) from pg_stat_activity as one join pg_roles as role on role.oid = usesysid
 where pid <> pg_backend_pid() and xact_start is not null
   and (pg_has_role(usesysid, 'USAGE') or pg_has_role('pg_signal_backend', 'USAGE') and not rolsuper)
   and wait_event_type = 'Client' and state_change < clock_timestamp() - interval '{_SILENT_MILLISECONDS} ms'
   and exists (select from pg_locks as held join pg_class on pg_class.oid = held.relation
                where held.pid = one.pid and held.granted and relnamespace = 'zerotail'::regnamespace)
"""


def take_locks(connection: Connection, locks: bytes) -> None:
    """Carry out a statement that takes locks, inside a transaction; who holds them and stands still is ended."""
    connection.execute(f"set local lock_timeout = {_LOCK_MILLISECONDS}".encode())
    while True:
        try:
            with connection.transaction():
                connection.execute(locks)
        except psycopg.errors.LockNotAvailable:
            end_standing_still(connection)
        else:
            connection.execute(b"set local lock_timeout = default")
            return


def end_standing_still(connection: Connection) -> None:
    """End the sessions that hold locks on our tables and have said nothing for a while."""
    connection.execute(b"select pg_stat_clear_snapshot()")  # else a transaction sees the sessions of its first look
    connection.execute(_END.encode())
