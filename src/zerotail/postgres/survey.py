"""A database as it is set at this moment: settings, overrides of roles, standbys, slots. Looking changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import conninfo

from zerotail.audit.facts import DatabaseFacts, FollowerFacts, SettingOverride, Settings, SlotFacts
from zerotail.deadline import Deadline
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.transaction import session_within

_NAMES = """
    fsync full_page_writes synchronous_commit synchronous_standby_names data_checksums zero_damaged_pages
    ignore_checksum_failure data_sync_retry wal_level max_wal_senders max_connections max_prepared_transactions
    max_slot_wal_keep_size
"""
# What this session's own login brings along says nothing about the server.
_SETTINGS = """
select name, setting, source = 'default' from pg_settings
 where name = any(%s) and source not in ('client', 'session', 'user', 'database', 'database user')
"""
_ROLE = """
select pg_is_in_recovery(), (select system_identifier from pg_control_system()),
       current_setting('server_version_num')::int, to_regclass('zerotail.rejoined') is not null
"""
_OVERRIDES = """
select rolname, datname, split_part(given, '=', 2)
  from pg_db_role_setting
 cross join lateral unnest(setconfig) as given
  left join pg_roles on pg_roles.oid = setrole
  left join pg_database on pg_database.oid = setdatabase
 where given like 'synchronous\\_commit=%%' order by rolname nulls first, datname nulls first
"""
_FOLLOWERS = """
select application_name, state, sync_state, exists (select from pg_replication_slots where active_pid = pid)
  from pg_stat_replication where state is distinct from 'backup' order by application_name
"""
_SLOTS = "select slot_name, active, wal_status from pg_replication_slots where not temporary order by slot_name"
_UNLOGGED = """
select format('%%I.%%I', nspname, relname) from pg_class join pg_namespace on pg_namespace.oid = relnamespace
 where relpersistence = 'u' and relkind in ('r', 'p') order by 1
"""
_SHOWN_OF_DSN = ("host", "port", "dbname", "user")


@dataclass(frozen=True, slots=True)
class DatabaseSurvey:
    """What a database answers."""

    facts: DatabaseFacts
    rejoined: Mapping[str, int]
    """Sites that came back, and the epoch that their topics carry in their names since."""


def survey_database(site: str, dsn: str, deadline: Deadline) -> DatabaseSurvey:
    """Look once; `Unavailable` when it does not answer, `Refused` when it does not let us look."""
    with session_within(dsn, deadline, application="zerotail audit") as connection:
        return _survey(connection, site, dsn)


def _survey(connection: Connection, site: str, dsn: str) -> DatabaseSurvey:
    is_standby, system, version, has_tables = one_row(connection, _ROLE)
    known = connection.execute(_SETTINGS.encode(), (_NAMES.split(),)).fetchall()
    facts = DatabaseFacts(
        site=site,
        address=_address(dsn),
        is_standby=is_standby,
        system=int(system),
        version=version,
        settings=Settings(
            {name: value for name, value, _ in known}, frozenset(name for name, _, default in known if default)
        ),
        overrides=tuple(SettingOverride(*row) for row in connection.execute(_OVERRIDES.encode(), ())),
        followers=tuple(FollowerFacts(*row) for row in connection.execute(_FOLLOWERS.encode())),
        slots=tuple(SlotFacts(*row) for row in connection.execute(_SLOTS.encode())),
        unlogged=tuple(name for (name,) in connection.execute(_UNLOGGED.encode(), ())),
    )
    rejoined = connection.execute(b"select site, epoch from zerotail.rejoined").fetchall() if has_tables else []
    return DatabaseSurvey(facts, dict(rejoined))


def _address(dsn: str) -> str:
    """For psql: where and as whom, and nothing that opens a door."""
    known = conninfo.conninfo_to_dict(dsn)
    return " ".join(f"{name}={known[name]}" for name in _SHOWN_OF_DSN if name in known)
