"""Locks that are not refused by a process that stands still.

A process that freezes in the middle of a transaction (a paused machine, a long pause of its collector) holds its locks
for as long as it pleases, and its server waits for its next word. Whoever changes the roles of the sites does not:
sessions that kept silent for a while in a transaction with locks on our tables are ended. Nothing is lost by that. What
was not committed did not happen, and the process finds out when it goes on.

Who may not end the session in question (it is a superuser's, and we are none) waits like everybody.

A worker of autovacuum gives way by itself, to whoever has waited for `deadlock_timeout`, and to nobody who gives up
sooner. So the first attempt is a short one, for sessions that stand still, and the others are longer than that.
"""

from __future__ import annotations

import psycopg

from zerotail.deadline import Deadline
from zerotail.postgres.connection import Connection

_LOCK_MILLISECONDS = 500
_LONGER_THAN_DEADLOCK_MILLISECONDS = 500
_SILENT_MILLISECONDS = 1000
_WAIT_LONGER = f"""
select set_config('lock_timeout', (extract(epoch from current_setting('deadlock_timeout')::interval) * 1000
                                   + {_LONGER_THAN_DEADLOCK_MILLISECONDS})::bigint::text, true)
"""
END_SESSIONS = """
select pg_terminate_backend(pid) from pg_stat_activity as one join pg_roles as role on role.oid = usesysid
 where pid <> pg_backend_pid()
   and (pg_has_role(usesysid, 'USAGE') or pg_has_role('pg_signal_backend', 'USAGE') and not rolsuper)
"""
"""Ends every other session that we may end; conditions go behind it."""
_STANDING_STILL = f"""
{END_SESSIONS}
   and xact_start is not null
   and wait_event_type = 'Client' and state_change < clock_timestamp() - interval '{_SILENT_MILLISECONDS} ms'
   and exists (select from pg_locks as held join pg_class on pg_class.oid = held.relation
                where held.pid = one.pid and held.granted and relnamespace = 'zerotail'::regnamespace)
"""


def take_locks(
    connection: Connection, locks: bytes, *, also_end: bytes = b"", deadline: Deadline | None = None
) -> bool:
    """Carry out a statement that takes locks, inside a transaction; who holds them and stands still is ended.

    The statement `also_end` ends further sessions, before each attempt. False when the deadline passes first.
    """
    connection.execute(f"set local lock_timeout = {_LOCK_MILLISECONDS}".encode())
    while True:
        if also_end:
            _end(connection, also_end)
        try:
            with connection.transaction():
                connection.execute(locks)
        except psycopg.errors.LockNotAvailable:
            _end(connection, _STANDING_STILL.encode())
            if deadline is not None and deadline.passed:
                return False
            connection.execute(_WAIT_LONGER.encode())
        else:
            connection.execute(b"set local lock_timeout = default")
            return True


def _end(connection: Connection, sessions: bytes) -> None:
    connection.execute(b"select pg_stat_clear_snapshot()")  # else a transaction sees the sessions of its first look
    connection.execute(sessions)
