"""Tables that come from a dump take nothing in, and tell nobody where they stand, until somebody says what they are."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import yaml

from support.before import load_database
from support.command import call
from support.journal import day_of, superuser
from support.standings import EAST
from zerotail.core.installation import NO_MARK
from zerotail.errors import Refused
from zerotail.lab.layout import Layout
from zerotail.machine import find_postgres_programs
from zerotail.ports import Standing
from zerotail.postgres.connection import one_row
from zerotail.postgres.installation import read_installation
from zerotail.postgres.lineage import observe_cut, read_standing
from zerotail.postgres.restored import GENERATIONS_AHEAD
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers

INSERT = """
insert into zerotail.instruction (producer, partition, serial, id, value)
select producer, partition, max(serial) + 1, 'one more', 'x' from zerotail.instruction group by 1, 2 limit 1
"""
SUBMIT = """
insert into zerotail.submission (producer, partition, id, value)
select producer, partition, 'one more', 'x' from zerotail.instruction limit 1
"""


@pytest.fixture(scope="module")
def restored(warm_lab: Layout, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A day's journal that was dumped, dropped and loaded again, in the same database."""
    database = day_of(warm_lab)[1]
    assert call("schema", "apply", "--dsn", database).code == 0
    programs, dump = find_postgres_programs(warm_lab.bindir), tmp_path_factory.mktemp("dump") / "dump.sql"
    assert programs is not None
    dumped = [f"{programs}/pg_dump", "--schema=zerotail", f"--file={dump}", "--dbname", database]
    subprocess.run(dumped, check=True, timeout=60)
    with superuser(database) as connection:
        connection.execute("drop schema zerotail cascade")
    loaded = [f"{programs}/psql", "-q", "-v", "ON_ERROR_STOP=1", f"--file={dump}", "--dbname", database]
    subprocess.run(loaded, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return database


def configured(folder: Path, database: str) -> tuple[str, ...]:
    path = folder / "zerotail.yaml"
    dsns = {"east": database, "west": "host=127.0.0.1 port=1"}
    sites = {
        name: {"kafka": {"bootstrap": f"127.0.0.1:{number}"}, "database": {"dsn": dsns[name]}}
        for number, name in enumerate(dsns, 1)
    }
    path.write_text(yaml.safe_dump({"name": "restored", "sites": sites}))
    return ("--config", str(path), "--site", "east")


def test_nobody_learns_where_they_stand_and_nothing_is_taken_in(restored: str) -> None:
    with closing(Session(restored)) as session, pytest.raises(Refused) as refused:
        session.read(read_standing)
    assert refused.value.code == "ZT318"
    assert refused.value.tries[0].startswith("zerotail schema apply --restored --site ")
    with superuser(restored) as connection:
        connection.execute("set session_replication_role = origin")
        for insert in (INSERT, SUBMIT):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="loaded from a dump"):
                connection.execute(insert)
    said = call("schema", "apply", "--dsn", restored)
    assert said.code == 3
    assert "loaded from a dump" in said.err


def test_they_begin_anew_when_somebody_types_the_name_of_the_site(restored: str, tmp_path: Path) -> None:
    where = configured(tmp_path, restored)
    asked = call("schema", "apply", *where, "--restored")
    assert asked.code == 3
    assert "--restored --site east --confirm east" in asked.err
    assert "'west' is not east" in call("schema", "apply", *where, "--restored", "--confirm", "west").err
    with superuser(restored) as connection:
        before, cut = read_installation(connection), observe_cut(connection)
        epoch, claims = one_row(connection, "select max(epoch), sum(claim) from zerotail.head")
        heads = one_row(connection, "select count(*) from zerotail.head")[0]
    answer = call("schema", "apply", *where, "--restored", "--confirm", "east", "--json").answer("schema-apply")
    with superuser(restored) as connection:
        standing = read_standing(connection)
        assert isinstance(standing, Standing)
        assert standing.installation == read_installation(connection)
        assert one_row(connection, "select sum(claim) from zerotail.head")[0] == claims + heads, (
            "older ones are refused"
        )
        with connection.transaction(force_rollback=True):
            connection.execute("set local session_replication_role = origin")
            assert connection.execute(INSERT).rowcount == 1
    assert answer["installation"] == standing.installation.name != before.name
    assert not standing.installation.owns(before.mark)
    assert not standing.installation.owns(NO_MARK)
    assert answer["epoch"] == standing.epoch == epoch + 256 * GENERATIONS_AHEAD
    assert standing.lineage.current.cut == cut
    assert standing.live_at(EAST)
    again = call("schema", "apply", *where, "--restored", "--confirm", "east")
    assert "nothing was changed" in again.out
    with superuser(restored) as connection:
        assert read_standing(connection) == standing


def test_a_dump_from_before_there_were_identities_begins_anew_when_somebody_says_so(
    warm_lab: Layout, tmp_path: Path
) -> None:
    database = load_database(warm_lab)[1]
    where = configured(tmp_path, database)
    with superuser(database) as connection:
        epoch = one_row(connection, "select max(epoch) from zerotail.epoch")[0]
    assert "--confirm east" in call("schema", "apply", *where, "--restored").err
    answer = call("schema", "apply", *where, "--restored", "--confirm", "east", "--json").answer("schema-apply")
    assert answer["epoch"] == epoch + 256 * GENERATIONS_AHEAD
    with superuser(database) as connection:
        standing = read_standing(connection)
    assert isinstance(standing, Standing)
    assert standing.live_at(EAST)
    assert not standing.installation.owns(NO_MARK), "what is in Kafka without a mark is of the former life"
    assert standing.installation.outside == answer["installation"]
    assert "nothing was changed" in call("schema", "apply", *where, "--restored", "--confirm", "east").out
