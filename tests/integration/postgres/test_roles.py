"""Who may do what to which table: every role tries everything."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from support.journal import day_of, new_database
from zerotail.deadline import Deadline
from zerotail.errors import Refused
from zerotail.lab.layout import Layout
from zerotail.ports import Standing
from zerotail.postgres.connection import Connection, connect
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.position import read_position
from zerotail.postgres.schema import apply_schema, schema_files
from zerotail.postgres.set_aside import drop
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers

TABLES = (
    "epoch", "producer", "instruction", "submission", "head", "segment", "state", "request", "lane", "outbox", "doubt",
    "rejoined", "step", "process", "poison", "set_aside", "site", "installation", "life",
)  # fmt: skip
ALLOWED: dict[str, dict[str, set[str]]] = {
    "writer": {
        "insert": {
            "instruction",
            "submission",
            "head",
            "segment",
            "state",
            "request",
            "lane",
            "outbox",
            "doubt",
            "process",
            "poison",
            "producer",
            "set_aside",
            "life",
        },
        "update": {"head", "state", "request", "lane", "process", "poison"},
        "delete": {"submission", "state", "process"},
        "truncate": set(),
    },
    "reader": {"insert": set(), "update": set(), "delete": set(), "truncate": set()},
    "operator": {
        "insert": {"epoch", "life", "head", "rejoined", "step", "producer", "process", "lane"},
        "update": {"epoch", "head", "rejoined", "step", "doubt", "lane", "poison", "process", "submission"},
        "delete": set(),
        "truncate": set(),
    },
    "truncator": {"insert": set(), "update": set(), "delete": {"instruction", "segment", "outbox"}, "truncate": set()},
}
UNCHANGEABLE = ("instruction", "segment", "outbox")
LOCKED_BY = "operator"
"""Who has a right to update these all the same, because `lock table` asks for it."""
SERVER_RIGHTS = """a superuser has to run in this database:
  grant execute on function pg_promote(boolean, integer) to zerotail_operator;
  grant execute on function pg_reload_conf() to zerotail_operator;
  grant execute on function pg_reload_conf() to zerotail_writer;"""


@pytest.fixture(scope="module")
def database(warm_lab: Layout) -> str:
    """A database with some rows in the tables that matter most."""
    return day_of(warm_lab)[1]


def attempt(connection: Connection, action: str, table: str) -> str:
    """Try something that touches every row, take it back, and answer how it went."""
    name = sql.Identifier("zerotail", table)
    column = connection.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and attidentity = '' "
        "order by attnum limit 1",
        (f"zerotail.{table}",),
    ).fetchone()
    assert column is not None
    statement = {
        "select": sql.SQL("select from {0}"),
        "insert": sql.SQL("insert into {0} overriding system value select * from {0} where false"),
        "update": sql.SQL("update {0} set {1} = {1}"),
        "delete": sql.SQL("delete from {0}"),
        "truncate": sql.SQL("truncate {0} cascade"),
    }[action].format(name, sql.Identifier(str(column[0])))
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return "no right"
    except psycopg.errors.RestrictViolation:
        return "stopped by the table"
    return "done"


@pytest.mark.parametrize("role", sorted(ALLOWED))
def test_a_role_may_do_what_it_needs_and_nothing_else(database: str, role: str) -> None:
    with connect(database, Deadline.after(30)) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(f"zerotail_{role}")))
        for table in TABLES:
            assert attempt(connection, "select", table) == "done"
            for action, tables in ALLOWED[role].items():
                expected = "done" if table in tables else "no right"
                if (role, action) == (LOCKED_BY, "update") and table in UNCHANGEABLE:
                    expected = "stopped by the table"
                assert attempt(connection, action, table) == expected, (action, table)


def test_an_operator_decides_about_a_row_that_was_set_aside_and_does_not_change_it(database: str) -> None:
    with connect(database, Deadline.after(30)) as connection:
        row = connection.execute(
            "insert into zerotail.set_aside (producer, partition, id, value, submitted_at, reason) "
            "select min(producer), 0, 'c-1', '', now(), 'taken' from zerotail.producer returning number"
        ).fetchone()
        assert row is not None
        connection.execute("set role zerotail_operator")
        assert drop(connection, row, "anna") == [row[0]]
        for column in ("producer", "partition", "id", "value", "submitted_at", "reason", "found_at"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"update zerotail.set_aside set {column} = {column}".encode())


def test_a_session_without_a_right_says_which_and_can_be_used_again(database: str) -> None:
    reader = Session(make_conninfo(database, options="-c role=zerotail_reader"))
    for _ in range(2):
        with pytest.raises(Refused, match="declined: permission denied for table process") as declined:
            reader.write(lambda connection: connection.execute("delete from zerotail.process").rowcount)
        assert declined.value.code == "ZT303"
    assert isinstance(reader.read(read_standing), Standing)
    reader.close()


def test_the_matrix_knows_every_table(database: str) -> None:
    with connect(database, Deadline.after(30)) as connection:
        found = connection.execute("select tablename from pg_tables where schemaname = 'zerotail'").fetchall()
    assert sorted(name for (name,) in found) == sorted(TABLES)


@pytest.mark.parametrize("table", UNCHANGEABLE)
@pytest.mark.parametrize("action", ["update", "delete", "truncate"])
def test_even_the_owner_cannot_change_or_remove_what_is_journaled(database: str, table: str, action: str) -> None:
    with connect(database, Deadline.after(30)) as owner:
        assert attempt(owner, action, table) == "stopped by the table"


@pytest.mark.parametrize("role", sorted(ALLOWED))
def test_every_role_can_see_where_the_database_stands(database: str, role: str) -> None:
    with connect(database, Deadline.after(30)) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(f"zerotail_{role}")))
        assert read_standing(connection).system
        assert read_position(connection)


@pytest.fixture
def plain(database: str, warm_lab: Layout) -> Iterator[str]:
    """A database of somebody who is no superuser; the roles are there, `database` has made them."""
    name, made = new_database(warm_lab)
    with connect(database, Deadline.after(30)) as superuser:
        superuser.execute("create role plain login")
        superuser.execute(f"alter database {name} owner to plain".encode())
        try:
            yield make_conninfo(made, user="plain")
        finally:
            superuser.execute(f"alter database {name} owner to current_user".encode())
            with connect(made, Deadline.after(30)) as there:
                there.execute("reassign owned by plain to current_user")
                there.execute("drop owned by plain")
            superuser.execute("drop role plain")


def test_who_is_no_superuser_applies_the_schema_and_is_told_what_is_left(plain: str) -> None:
    warnings: list[str] = []
    with connect(plain, Deadline.after(30)) as owner:
        assert len(apply_schema(owner, warnings.append)) == len(schema_files())
    assert warnings == [SERVER_RIGHTS]
    with connect(make_conninfo(plain, user="postgres"), Deadline.after(30)) as superuser:
        superuser.execute(SERVER_RIGHTS.partition(":")[2].encode())
    warnings.clear()
    with connect(plain, Deadline.after(30)) as owner:
        apply_schema(owner, warnings.append)
    assert warnings == []
