"""Which rights of an act the user who asks does not have: looked up before anything is touched.

On a standby nothing can be granted, and once the other site is lost there is nowhere else to do it. Privileges are
replicated, so a standby answers for the day on which it is the primary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zerotail.postgres.connection import Connection, one_row

ROLE = "zerotail_operator"
_TABLES = {
    "insert": ("epoch", "head", "lane", "life", "step", "rejoined"),
    "update": ("epoch", "head", "lane", "rejoined", "submission", "doubt"),
}
_LOCKED = {"update": ("instruction", "submission", "segment", "outbox")}
"""While the tail of a site is read that is to be replaced."""


# By number, not by name: a name would be looked up in a schema that the user may not even use.
def _by(wanted: Mapping[str, tuple[str, ...]]) -> str:
    return " and ".join(
        f"(select bool_and(has_table_privilege({{role}}, pg_class.oid, '{right}')) from pg_class "
        f"where relnamespace = (select oid from pg_namespace where nspname = 'zerotail') "
        f"and relname in ({', '.join(repr(table) for table in tables)}))"
        for right, tables in wanted.items()
    )


_KEEP = "keep the tail"
_PROMOTE = "promote a standby"
_LEAVE = "stop receiving the log of a primary that has lost the end of it"
_WRITER = "zerotail_writer"
"""As whom emitters run: no right of whoever asks, and no step of an act needs it."""
_ON_THE_SERVER = (
    ("see who follows", "pg_has_role({role}, 'pg_read_all_stats', 'usage')", "grant pg_read_all_stats to {to}"),
    (
        "end sessions that stand in the way",
        "pg_has_role({role}, 'pg_signal_backend', 'usage')",
        "grant pg_signal_backend to {to}",
    ),
    (
        _PROMOTE,
        "has_function_privilege({role}, 'pg_promote(boolean, integer)', 'execute')",
        "grant execute on function pg_promote(boolean, integer) to {to}",
    ),
    (
        "reload settings",
        "has_function_privilege({role}, 'pg_reload_conf()', 'execute')",
        "grant execute on function pg_reload_conf() to {to}",
    ),
    (
        "change whom commits wait for",
        "case when current_setting('server_version_num')::int < 150000 then (select rolsuper from pg_roles "
        "where rolname = {role}) else has_parameter_privilege({role}, 'synchronous_standby_names', 'alter system') end",
        "grant alter system on parameter synchronous_standby_names to {to}",
    ),
    (
        _LEAVE,
        "case when current_setting('server_version_num')::int < 150000 then true else coalesce((select "
        "has_parameter_privilege(oid, 'primary_conninfo', 'alter system') "
        "and has_function_privilege(oid, 'pg_reload_conf()', 'execute') "
        f"from pg_roles where rolname = '{_WRITER}'), true) end",
        f"grant alter system on parameter primary_conninfo to {_WRITER}; "
        f"grant execute on function pg_reload_conf() to {_WRITER}",
    ),
)
_RIGHTS = (("write epochs", _by(_TABLES), ""), (_KEEP, _by(_LOCKED), ""), *_ON_THE_SERVER)


@dataclass(frozen=True, slots=True)
class MissingRight:
    """What a user may not do, and the statement that a superuser runs at the primary so that it may."""

    what: str
    grant: str

    @property
    def to_promote(self) -> bool:
        """Whether only `pg_promote` needs it, which a command of the user's own replaces."""
        return self.what == _PROMOTE

    @property
    def of_the_emitters(self) -> bool:
        """Whether it is what a standby's emitter needs to guard its copy, and no act."""
        return self.what == _LEAVE

    @property
    def to_keep_the_tail(self) -> bool:
        """Whether only a rejoin needs it, at the site that is to be replaced."""
        return self.what == _KEEP


def missing_rights(connection: Connection) -> tuple[MissingRight, ...]:
    """What the acts need and this user does not have; empty for an operator and for a superuser."""
    user, has_role = one_row(
        connection,
        "select quote_ident(current_user), exists (select from pg_roles where rolname = %s)",
        (ROLE,),
    )
    own = _answers(connection, "current_user")
    if all(own):
        return ()
    roles = _answers(connection, f"'{ROLE}'") if has_role else [False] * len(_RIGHTS)
    missing = []
    for (what, _, grant), mine, the_roles in zip(_RIGHTS, own, roles, strict=True):
        if not mine:
            by_role = the_roles or not grant
            missing.append(MissingRight(what, f"grant {ROLE} to {user}" if by_role else grant.format(to=ROLE)))
    return tuple(missing)


def _answers(connection: Connection, role: str) -> list[bool]:
    asked = ", ".join(f"({asked.format(role=role)})" for _, asked, _ in _RIGHTS)
    return [bool(answer) for answer in one_row(connection, f"select {asked}")]
