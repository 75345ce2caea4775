"""Make a standby the primary.

Everything that the standby had flushed becomes part of the new lineage, on a new timeline; from then on it confirms
nothing to the old primary. Commits of the new primary wait for nobody until a standby is attached to it.
"""

from __future__ import annotations

from zerotail.core.identity import Timeline
from zerotail.deadline import Deadline, wait_until
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.synchronous import set_synchronous_standby
from zerotail.postgres.transaction import session_within


def promote(dsn: str, deadline: Deadline) -> Timeline:
    """Promote the standby at `dsn`; answers its new timeline. A database that is primary already stays as it is."""
    with session_within(dsn, deadline) as connection:
        if is_in_recovery(connection):
            # Before, and not after: a copy may have brought along whom the old primary waited for.
            set_synchronous_standby(connection, None)
            connection.execute("select pg_promote(wait => false)")
            wait_until("the standby is promoted", lambda: not is_in_recovery(connection), deadline)
        return current_timeline(connection)


def is_in_recovery(connection: Connection) -> bool:
    """Whether this server follows another one."""
    return bool(one_row(connection, "select pg_is_in_recovery()")[0])


def current_timeline(connection: Connection) -> Timeline:
    """The timeline that this primary writes."""
    query = "select ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int"
    return Timeline(int(one_row(connection, query)[0]))
