"""Rules about PostgreSQL. What a standby has as a copy (roles, tables) is judged at its primary."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.audit.facts import DatabaseFacts, NotSeen, SettingOverride
from zerotail.audit.rule import AnyRule, Rule, Violation
from zerotail.core.standby import quoted, slot_of

_PSQL = 'psql "{address}"'
_ALTER = f"{_PSQL} -c 'alter system set {{setting}} = {{value}}' -c 'select pg_reload_conf()'"
_DURABLE = ("on", "remote_apply")
_BLIND = ("zero_damaged_pages", "ignore_checksum_failure")


def _switched_off(database: DatabaseFacts, setting: str) -> Iterator[Violation]:
    if not database.settings.switch(setting):
        yield Violation(database.settings.shown(setting), {"setting": setting, "value": "on"})


def _no_fsync(database: DatabaseFacts) -> Iterator[Violation]:
    return _switched_off(database, "fsync")


def _torn_pages(database: DatabaseFacts) -> Iterator[Violation]:
    return _switched_off(database, "full_page_writes")


def _returns_early(database: DatabaseFacts) -> Iterator[Violation]:
    if database.settings["synchronous_commit"] not in _DURABLE:
        yield Violation(database.settings.shown("synchronous_commit"), {"setting": "synchronous_commit", "value": "on"})


def _overridden(database: DatabaseFacts) -> Iterator[Violation]:
    if database.is_standby:
        return
    for one in database.overrides:
        if one.value not in _DURABLE:
            yield Violation(f"synchronous_commit={one.value} for {_whose(one)}", {"whose": _target(one)})


def _whose(one: SettingOverride) -> str:
    role = f"role {one.role}" if one.role else "every role"
    return f"{role} in database {one.database}" if one.database else role


def _target(one: SettingOverride) -> str:
    if one.role is None:
        return f"database {_quoted(one.database)}" if one.database else "role all"
    return f"role {_quoted(one.role)}" + (f" in database {_quoted(one.database)}" if one.database else "")


def _quoted(name: str | None) -> str:
    """An SQL identifier that can stand between a shell's single quotes."""
    return '"' + (name or "").replace('"', '""').replace("'", "'\\''") + '"'


def _waits_for_nobody(database: DatabaseFacts) -> Iterator[Violation]:
    if not database.is_standby and not database.settings["synchronous_standby_names"].strip():
        # Quotes are doubled: the repair gives the value as an identifier, between a shell's single quotes.
        name = quoted(database.followers[0].name).replace('"', '""') if database.followers else "STANDBY"
        yield Violation(database.settings.shown("synchronous_standby_names"), {"standby": name})


def _nobody_confirms(database: DatabaseFacts) -> Iterator[Violation]:
    if database.is_standby or not database.settings["synchronous_standby_names"].strip():
        return
    if any(one.state is None for one in database.followers):
        raise NotSeen("pg_stat_replication hides the standbys from this user: grant pg_read_all_stats")
    if not any(one.sync_state in ("sync", "quorum") and one.state == "streaming" for one in database.followers):
        seen = ", ".join(f"{one.name} is {one.state} and {one.sync_state}" for one in database.followers)
        yield Violation(f"no synchronous standby follows: {seen or 'nobody does'}")


def _no_checksums(database: DatabaseFacts) -> Iterator[Violation]:
    if not database.settings.switch("data_checksums"):
        yield Violation(database.settings.shown("data_checksums"))


def _looks_away(database: DatabaseFacts) -> Iterator[Violation]:
    for setting in _BLIND:
        if database.settings.switch(setting):
            yield Violation(database.settings.shown(setting), {"setting": setting, "value": "off"})


def _retries_sync(database: DatabaseFacts) -> Iterator[Violation]:
    if database.settings.switch("data_sync_retry"):
        yield Violation(database.settings.shown("data_sync_retry"))


def _no_slot(database: DatabaseFacts) -> Iterator[Violation]:
    if any(one.state is None for one in database.followers):
        raise NotSeen("pg_stat_replication hides the standbys from this user: grant pg_read_all_stats")
    for one in database.followers:
        if not one.has_slot:
            yield Violation(f"standby {one.name} follows without a slot", {"slot": slot_of(one.name)})


def _bad_slot(database: DatabaseFacts) -> Iterator[Violation]:
    for one in database.slots:
        if one.wal_status in ("unreserved", "lost"):
            yield Violation(f"slot {one.slot}: its log is {one.wal_status}", {"slot": one.slot})
        elif not one.active:
            yield Violation(f"slot {one.slot} keeps the log for nobody", {"slot": one.slot})


def _unlogged(database: DatabaseFacts) -> Iterator[Violation]:
    if not database.is_standby:
        for table in database.unlogged:
            yield Violation(f"unlogged table {table}", {"table": table})


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="postgres-fsync",
        title="What is committed is on the disk",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="fsync",
        violations=_no_fsync,
        why="The power fails: commits of the last half minute are missing, and the rest of the files may be damaged "
        "beyond repair.",
        default="on by default; off is a left-over from loading data quickly.",
        repair=_ALTER,
    ),
    Rule(
        id="postgres-full-page-writes",
        title="A page that was half written can be repaired",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="full_page_writes",
        violations=_torn_pages,
        why="The power fails while a page is being written: half of it is old, half new, and the log has no whole "
        "copy to repair it from.",
        default="on by default.",
        repair=_ALTER,
    ),
    Rule(
        id="postgres-synchronous-commit",
        title="A commit returns when both sites have it on disk",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="synchronous_commit of the server",
        violations=_returns_early,
        why="A service commits an instruction, tells its customer, and the site burns down: with `local` the other "
        "site never had it, with `off` not even this one, with `remote_write` the other site had it in memory.",
        default="on by default. Our own sessions commit locally and ask the gate before anything leaves; other "
        "services have no gate.",
        repair=_ALTER,
    ),
    Rule(
        id="postgres-synchronous-commit-overrides",
        title="No role and no database commits earlier than the server",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="synchronous_commit in pg_db_role_setting",
        violations=_overridden,
        why="The server says `on`, one role was set to `off` for a nightly load, and the service that shares the "
        "role loses commits when the site is lost.",
        default="None by default; such a setting shows in no configuration file.",
        repair=f"{_PSQL} -c 'alter {{whose}} reset synchronous_commit'",
    ),
    Rule(
        id="postgres-standby-names",
        title="Commits wait for the other site",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="synchronous_standby_names of the primary",
        violations=_waits_for_nobody,
        why="Without a name every commit is local, whatever synchronous_commit says: the site is lost, and with it "
        "all that the standby had not received.",
        default="Empty by default, and emptied when the other site was lost and this one went on alone.",
        repair=f"{_PSQL} -c 'alter system set synchronous_standby_names = \"FIRST 1 ({{standby}})\"' "
        "-c 'select pg_reload_conf()'",
    ),
    Rule(
        id="postgres-standby-streaming",
        title="The standby that commits wait for is there",
        weight="risk",
        kind=DatabaseFacts,
        looks_at="pg_stat_replication of the primary against synchronous_standby_names",
        violations=_nobody_confirms,
        why="Every commit hangs; somebody empties synchronous_standby_names to get going, and the next loss of the "
        "site loses what was committed since.",
        default="A commit waits without a limit, and a name that is misspelt is no error.",
        repair="zerotail status    # which standby is missing, and since when; then: zerotail rejoin plan",
    ),
    Rule(
        id="postgres-checksums",
        title="A page that the disk has changed is noticed",
        weight="risk",
        kind=DatabaseFacts,
        looks_at="data_checksums",
        violations=_no_checksums,
        why="A disk returns a wrong block without an error: it is read, changed and written again, and the loss is "
        "found when the books do not add up.",
        default="off up to PostgreSQL 17, on since 18.",
        repair="pg_checksums --enable -D DATA    # at {site}, while the server is stopped",
    ),
    Rule(
        id="postgres-damage-ignored",
        title="Damaged pages are an error",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="zero_damaged_pages, ignore_checksum_failure",
        violations=_looks_away,
        why="A damaged page is taken for an empty one: its rows are gone without an error, and the next vacuum makes "
        "that final.",
        default="off by default; they are switched on to save what is left, and stay so.",
        repair=_ALTER,
    ),
    Rule(
        id="postgres-sync-retry",
        title="A failed write to disk stops the server",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="data_sync_retry",
        violations=_retries_sync,
        why="The first fsync fails and the kernel forgets the dirty pages; the second one succeeds, the checkpoint "
        "is completed, and the rows are nowhere.",
        default="off by default, since PostgreSQL 12.",
        repair=f"{_PSQL} -c 'alter system set data_sync_retry = off'    # then restart the server",
    ),
    Rule(
        id="postgres-standby-slot",
        title="The log is kept until the standby has it",
        weight="risk",
        kind=DatabaseFacts,
        looks_at="active_pid in pg_replication_slots against pg_stat_replication",
        violations=_no_slot,
        why="The link is down for an hour, the primary removes log that the standby lacks, and while a new copy is "
        "made the second site has nothing to take over with.",
        default="A standby follows without a slot unless primary_slot_name is set.",
        repair=f"{_PSQL} -c \"select pg_create_physical_replication_slot('{{slot}}')\""
        "    # and primary_slot_name = '{slot}' at the standby",
    ),
    Rule(
        id="postgres-slots",
        title="Every slot is used, and has its log",
        weight="risk",
        kind=DatabaseFacts,
        looks_at="active and wal_status in pg_replication_slots",
        violations=_bad_slot,
        why="A slot that nobody uses keeps the log until the disk is full and the primary stops; one whose log is "
        "lost belongs to a standby that will never catch up.",
        default="A slot stays until it is dropped; max_slot_wal_keep_size has no limit by default.",
        repair=f"{_PSQL} -c \"select pg_drop_replication_slot('{{slot}}')\"    # or start the standby that uses it",
    ),
    Rule(
        id="postgres-unlogged",
        title="Every table is in the log",
        weight="loss",
        kind=DatabaseFacts,
        looks_at="relpersistence of tables",
        violations=_unlogged,
        why="An unlogged table is empty after a crash, and was never at the other site.",
        default="Tables are logged by default; UNLOGGED is chosen for speed.",
        repair=f"{_PSQL} -c 'alter table {{table}} set logged'",
    ),
)
