"""A database that wants a password: one connection string opens it for psycopg and for ADBC in Spark's workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support.running import Running, running_system
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import answers, one_row, session
from zerotail.postgres.feed_arrow import read_rows

USER, PASSWORD = "guarded", "it's \\ a secret: #1"
RULE = f"host all {USER} 127.0.0.1/32 scram-sha-256\n"


@pytest.fixture
def guarded(lab: Layout) -> Iterator[str]:
    """A user who must say the password at both sites: how to connect to east, still without the password."""
    own = dsn(lab.database("east"))
    files = [lab.folder_of(lab.database(site).part) / "data" / "pg_hba.conf" for site in ("east", "west")]
    before = [file.read_text() for file in files]
    quoted = PASSWORD.replace("'", "''")
    with session(own, Deadline.after(30)) as primary:
        primary.execute(f"create role {USER} superuser login password '{quoted}'".encode())
    rewrite(lab, dict(zip(files, [RULE + text for text in before], strict=True)))
    without = own.replace("user=postgres", f"user={USER}")
    # A server takes up its rules a moment after it is told to.
    wait_until("the password is wanted", lambda: not answers(f"{without} passfile=/dev/null"), Deadline.after(30))
    yield without
    rewrite(lab, dict(zip(files, before, strict=True)))
    with session(own, Deadline.after(30)) as primary:
        primary.execute(f"drop role {USER}".encode())


def rewrite(lab: Layout, texts: dict[Path, str]) -> None:
    """Other rules about who may log in."""
    for file, text in texts.items():
        file.write_text(text)
    for site in ("east", "west"):
        with session(dsn(lab.database(site)), Deadline.after(30)) as database:
            database.execute(b"select pg_reload_conf()")


def as_written(way: str, without: str, folder: Path) -> str:
    """The password in a connection string, in a URL, or in a file of its own."""
    options = dict(pair.split("=") for pair in without.split())
    if way == "option":
        escaped = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        return f"{without} password='{escaped}' sslmode=prefer"
    if way == "url":
        place = f"{options['host']}:{options['port']}/{options['dbname']}"
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@{place}?sslmode=prefer"
    file = folder / "passwords"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    file.write_text(f"*:*:*:{USER}:{escaped}\n")
    file.chmod(0o600)
    return f"{without} passfile={file}"


@pytest.mark.servers
@pytest.mark.parametrize("way", ["option", "url", "passfile"])
def test_one_connection_string_opens_the_database_for_both_drivers(guarded: str, tmp_path: Path, way: str) -> None:
    written = as_written(way, guarded, tmp_path)
    with session(written, Deadline.after(30)) as database:
        assert one_row(database, "select current_user") == (USER,)
    assert list(read_rows(written, 1_000_000, 0, 1, 2)) == []


@pytest.mark.servers
def test_both_drivers_say_that_a_password_is_wrong_and_do_not_show_it(guarded: str) -> None:
    wrong = f"{guarded} password=guessed"
    with (
        pytest.raises(Unavailable, match="password authentication failed") as by_psycopg,
        session(wrong, Deadline.after(30)),
    ):
        pass
    with pytest.raises(Unavailable, match="password authentication failed") as by_adbc:
        list(read_rows(wrong, 1, 0, 1, 2))
    assert "guessed" not in str(by_psycopg.value) + str(by_adbc.value)


def with_password(system: Running, password_file: str) -> None:
    """Let every process of the system log in with a password that stands in a file beside the configuration."""
    content = system.content()
    for site in content["sites"].values():
        login = f"user={USER} password=${{file:{password_file}}}"
        site["database"]["dsn"] = site["database"]["dsn"].replace("user=postgres", login)
    system.config.write_text(json.dumps(content))


@pytest.mark.nightly
@pytest.mark.usefixtures("guarded")
def test_a_whole_site_runs_with_a_password(lab: Layout, tmp_path: Path) -> None:
    for name, text in (("right", PASSWORD), ("wrong", "guessed")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    with running_system(lab, tmp_path, "login") as system:
        with_password(system, "wrong")
        assert system.start("flow").wait(60) == Unavailable.exit_code
        with_password(system, "right")
        system.start("all")
        system.wait_for_line("running stage")
        system.insert(300)
        system.wait_until_all_arrived()
        system.require_exactly_once()
