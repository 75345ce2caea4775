"""Which standby a commit waits for, and whether it is really there.

The setting says what commits wait for; it proves nothing about any row (see `gate`). A replication row with the state
`streaming` says that the standby follows at this moment.
"""

from __future__ import annotations

from psycopg import sql

from zerotail.core.standby import Commits, Follower, written
from zerotail.deadline import Deadline, wait_until
from zerotail.postgres.connection import Connection, one_row

# As a session begins: what this one has set for itself says nothing of the others.
_SETTINGS = """
select current_setting('synchronous_standby_names'),
       (select reset_val from pg_settings where name = 'synchronous_commit')
"""
_FOLLOWERS = b"""
select application_name, state, sync_state,
       greatest(pg_current_wal_flush_lsn() - coalesce(flush_lsn, '0/0'::pg_lsn), 0)::bigint
  from pg_stat_replication where state is distinct from 'backup' order by application_name
"""


def read_commits(connection: Connection) -> Commits:
    """What a commit of this primary meets."""
    setting, level = one_row(connection, _SETTINGS)
    return Commits(setting, tuple(Follower(*row) for row in connection.execute(_FOLLOWERS)), level)


def set_synchronous_standby(connection: Connection, standby: str | None) -> None:
    """Let commits wait for this standby, or for nobody; in force when this returns."""
    names = written(standby) if standby else ""
    connection.execute(sql.SQL("alter system set synchronous_standby_names = {}").format(names))
    connection.execute("select pg_reload_conf()")

    # The reload is a signal; every session sees it at its own next statement.
    def in_force() -> bool:
        return bool(one_row(connection, "show synchronous_standby_names")[0] == names)

    wait_until(f"synchronous_standby_names is {names!r}", in_force, Deadline.after(10), every_seconds=0.01)


def is_streaming(connection: Connection, standby: str) -> bool:
    """Whether the standby of this name follows now."""
    query = "select exists (select from pg_stat_replication where application_name = %s and state = 'streaming')"
    return bool(one_row(connection, query, (standby,))[0])


def wait_until_streaming(connection: Connection, standby: str, deadline: Deadline) -> None:
    """Return when the standby of this name follows."""
    wait_until(f"standby {standby} follows", lambda: is_streaming(connection, standby), deadline)
