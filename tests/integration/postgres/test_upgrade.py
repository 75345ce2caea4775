"""The tables of before become those of today, wherever `schema apply` is killed, and nothing in them is lost."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from support.before import columns_of, definitions_of, load_database, rows_of
from support.journal import new_database, superuser
from support.seeds import seed_of
from support.upgrade_statements import statements_of
from zerotail.core.installation import NO_MARK
from zerotail.lab.layout import Layout
from zerotail.ports import Refused
from zerotail.postgres.connection import one_row
from zerotail.postgres.installation import read_installation
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.transaction import OLD_TABLES, Session

PROCESS = Path(__file__).parents[2] / "support" / "upgrade_process.py"
POINTS = 4
DRAWN = {
    "installation": ["one", "accepts_unmarked"],
    "life": ["number", "started_at", "system", "timeline", "verified_at is null"],
}
"""Of tables with something that is drawn anew for each database: the rest of it."""


class Upgrade:
    """Databases of before, and the command that is killed in them."""

    def __init__(self, lab: Layout, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.template, database = load_database(lab)
        self.old = columns_of(database)
        self.kept = rows_of(database, self.old)

    def copied(self) -> str:
        """One more database of before."""
        return new_database(self.lab, self.template)[1]

    def apply(self, database: str, fatal: int = 0, how: str = "process") -> subprocess.CompletedProcess[str]:
        """`schema apply`, killed before the statement of this number."""
        path = self.folder / "zerotail.yaml"
        sites = {
            name: {"kafka": {"bootstrap": f"127.0.0.1:{number}"}, "database": {"dsn": dsn}}
            for number, (name, dsn) in enumerate({"east": database, "west": "host=127.0.0.1 port=1"}.items(), 1)
        }
        path.write_text(yaml.safe_dump({"name": "before", "sites": sites}))
        arguments = ("schema", "apply", "--config", str(path), "--site", "east")
        command = [sys.executable, str(PROCESS), str(fatal), how, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def end_of(self, database: str) -> tuple[str, Any]:
        """Everything that is there at the end: definitions, and rows."""
        return definitions_of(self.lab, database), rows_of(database, columns_of(database) | DRAWN)

    def require_same_end(self, database: str, end: tuple[str, Any]) -> None:
        """Nothing differs from what an unkilled one comes to."""
        definitions, rows = self.end_of(database)
        assert definitions == end[0]
        assert {name: rows[name] - end[1][name] for name in rows if rows[name] != end[1][name]} == {}

    def require_nothing_lost(self, database: str) -> None:
        """Each row of before is there, with all that it had."""
        assert rows_of(database, self.old) == self.kept


@pytest.fixture(scope="module")
def upgrade(warm_lab: Layout, tmp_path_factory: pytest.TempPathFactory) -> Upgrade:
    return Upgrade(warm_lab, tmp_path_factory.mktemp("upgrade"))


@pytest.fixture(scope="module")
def unkilled(upgrade: Upgrade) -> tuple[int, tuple[str, Any]]:
    """How many statements an upgrade has, and what it comes to."""
    database = upgrade.copied()
    said = upgrade.apply(database)
    assert said.returncode == 0, said.stderr
    upgrade.require_nothing_lost(database)
    return int(said.stderr.split()[-2]), upgrade.end_of(database)


def require_survived(upgrade: Upgrade, unkilled: tuple[int, tuple[str, Any]], fatal: int, how: str) -> None:
    database = upgrade.copied()
    killed = upgrade.apply(database, fatal, how)
    assert killed.returncode == (-9 if how == "process" else 4), (fatal, how, killed)
    assert "Traceback" not in killed.stderr, killed.stderr
    upgrade.require_nothing_lost(database)
    again = upgrade.apply(database)
    assert again.returncode == 0, (fatal, how, again.stderr)
    upgrade.require_nothing_lost(database)
    upgrade.require_same_end(database, unkilled[1])
    drop(upgrade, database)


def drop(upgrade: Upgrade, database: str) -> None:
    name = database.split("dbname=")[1].split(maxsplit=1)[0]
    with superuser(database.replace(f"dbname={name}", "dbname=postgres")) as connection:
        connection.execute(f"drop database {name} with (force)".encode())


@pytest.mark.servers
def test_what_was_there_is_there_and_the_installation_takes_its_old_records_for_its_own(
    upgrade: Upgrade, unkilled: tuple[int, tuple[str, Any]]
) -> None:
    count, (_, rows) = unkilled
    assert count > 150
    assert sorted(rows["site"]) == ["(east,0)", "(west,1)"]
    database = upgrade.copied()
    assert upgrade.apply(database).returncode == 0
    with superuser(database) as connection:
        installation = read_installation(connection)
        turns = one_row(connection, "select count(distinct turn), count(*) from zerotail.submission")
    assert installation.owns(NO_MARK)
    assert installation.owns(installation.mark)
    assert installation.outside == "", "receivers know its messages without an identity"
    assert turns == (7, 7), "rows that wait have their turn"


@pytest.mark.servers
def test_a_program_that_finds_tables_of_before_says_what_to_type(upgrade: Upgrade) -> None:
    with closing(Session(upgrade.copied())) as session:
        seen = session.read(read_standing)
        assert isinstance(seen, Refused)
        assert seen.reason.startswith(OLD_TABLES)
        silence = session.silence("east", seen, tries=["zerotail status"])
    assert silence.code == "ZT315"
    assert silence.tries[0].startswith("zerotail schema apply ")


@pytest.mark.servers
@pytest.mark.parametrize("place", range(POINTS))
def test_an_upgrade_that_is_killed_is_finished_by_running_it_again(
    upgrade: Upgrade, unkilled: tuple[int, tuple[str, Any]], place: int
) -> None:
    fatal = Random(seed_of(f"upgrade {place}")).randrange(1, unkilled[0] + 1)
    require_survived(upgrade, unkilled, fatal, ("process", "backend")[place % 2])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["process", "backend"])
def test_it_is_finished_wherever_it_was_killed(
    upgrade: Upgrade, unkilled: tuple[int, tuple[str, Any]], how: str
) -> None:
    for fatal in range(1, unkilled[0] + 1):
        require_survived(upgrade, unkilled, fatal, how)


@pytest.mark.servers
def test_one_that_is_killed_at_every_statement_in_turn_comes_to_the_same_end(
    upgrade: Upgrade, unkilled: tuple[int, tuple[str, Any]]
) -> None:
    """Each attempt gets a little further; in steps that are drawn, so that it takes seconds."""
    database, fatal = upgrade.copied(), 0
    step = Random(seed_of("upgrade in steps"))
    while (fatal := fatal + step.randrange(20, 60)) <= unkilled[0]:
        assert upgrade.apply(database, fatal).returncode == -9
    assert upgrade.apply(database).returncode == 0
    upgrade.require_nothing_lost(database)
    upgrade.require_same_end(database, unkilled[1])


@pytest.mark.fast
def test_a_text_falls_into_its_statements() -> None:
    text = "-- one; two\nselect ';' ;do $$ begin; end $$;create f() as $q$ a; $$ b; $q$;\n-- end\n"
    assert statements_of(text) == ["select ';'", "do $$ begin; end $$", "create f() as $q$ a; $$ b; $q$"]
