"""Make a standby the primary.

Everything that the standby had flushed becomes part of the new lineage, on a new timeline; from then on it confirms
nothing to the old primary. Commits of the new primary wait for nobody until a standby is attached to it.
"""

from __future__ import annotations

from zerotail.core.completeness import told_position
from zerotail.core.identity import Lsn, Timeline
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.position import read_flushed
from zerotail.postgres.synchronous import set_synchronous_standby
from zerotail.postgres.transaction import session_within

_NOWHERE = Lsn(0)


def promote(dsn: str, deadline: Deadline, at_least: Lsn = _NOWHERE) -> Timeline:
    """Promote the standby at `dsn`; answers its new timeline. A database that is primary already stays as it is."""
    with session_within(dsn, deadline) as connection:
        if is_in_recovery(connection):
            require_same_server(connection, at_least)
            # Before, and not after: a copy may have brought along whom the old primary waited for.
            set_synchronous_standby(connection, None)
            connection.execute("select pg_promote(wait => false)")
            wait_until("the standby is promoted", lambda: not is_in_recovery(connection), deadline)
        return current_timeline(connection)


def require_same_server(connection: Connection, at_least: Lsn) -> None:
    """`Refused` when this standby holds less of the log than the one that was looked at: a server never loses any."""
    held = read_flushed(connection)
    if held < at_least:
        raise Refused(
            f"the standby that answers now holds the log up to {told_position(held)} only, and the one that was looked "
            f"at up to {told_position(at_least)}: two servers answer under one address"
        )


def stop_receiving(connection: Connection) -> None:
    """Let this standby receive no more log; in force when its receiver has gone. For a superuser, or who may set it."""
    connection.execute("alter system set primary_conninfo = ''")
    connection.execute("select pg_reload_conf()")
    gone = "select not exists (select from pg_stat_wal_receiver)"
    wait_until("no log is received", lambda: one_row(connection, gone)[0], Deadline.after(5))


def is_in_recovery(connection: Connection) -> bool:
    """Whether this server follows another one."""
    return bool(one_row(connection, "select pg_is_in_recovery()")[0])


def current_timeline(connection: Connection) -> Timeline:
    """The timeline that this primary writes."""
    query = "select ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int"
    return Timeline(int(one_row(connection, query)[0]))
