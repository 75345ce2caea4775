"""`zerotail schema`: the tables as SQL, and how they get into a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from zerotail.cli.database_options import ANSWER_SECONDS, chosen_database, database_options
from zerotail.cli.output import json_option, print_answer, print_json
from zerotail.errors import Misused

if TYPE_CHECKING:
    from zerotail.postgres.connection import Connection


@click.group("schema", epilog="Example:  zerotail schema print")
def command() -> None:
    """The tables of journal, outbox and epochs: numbered SQL files that a DBA can read and run."""


@command.command("print", epilog="Example:  zerotail schema print > zerotail.sql")
@json_option
def show(as_json: bool) -> None:
    """All files in order, as one text that psql can run."""
    from zerotail.postgres.schema import schema_files

    files = schema_files()
    if as_json:
        from zerotail.cli.answers import SchemaFile, SchemaPrintAnswer

        print_json("schema-print", SchemaPrintAnswer(tuple(SchemaFile(name, text) for name, text in files)))
    else:
        print_answer("\n".join(f"-- {name}\n\n{text}" for name, text in files))


@command.command("apply", epilog="Example:  zerotail schema apply --site east --first-epoch")
@database_options
@click.option("--first-epoch", is_flag=True, help="Let this site begin as the active one, if nothing has begun yet.")
@click.option("--restored", is_flag=True, help="Say that the tables were loaded from a dump: they begin a new life.")
@click.option("--confirm", metavar="SITE", help="With --restored: the site's name, as it would be typed when asked.")
@json_option
def apply(
    config: str | None,
    site: str | None,
    dsn: str | None,
    first_epoch: bool,
    restored: bool,
    confirm: str | None,
    as_json: bool,
) -> None:
    """Run every file against a primary, each in a transaction of its own. Running them again changes nothing.

    With both --site and --dsn the site is the configuration's, reached by this connection string: as a superuser, say.
    """
    import time
    from dataclasses import replace

    from zerotail.deadline import Deadline
    from zerotail.postgres.connection import session
    from zerotail.postgres.schema import apply_schema

    if (first_epoch or restored) and dsn is not None and site is None:
        what = "--restored" if restored else "--first-epoch"
        raise Misused(
            f"{what} needs a configuration and one of its sites: an epoch has the number of its site.",
            tries=[f"zerotail schema apply {what} --site S --dsn DSN    # S: the site of that database"],
        )
    configured = dsn is None or site is not None
    database = chosen_database(config, site, None if configured else dsn)
    if dsn is not None:
        database = replace(database, dsn=dsn)
    began, warnings = time.monotonic(), list[str]()
    with _as_its_owner(), session(database.dsn, Deadline.after(ANSWER_SECONDS)) as connection:
        names = apply_schema(connection, warnings.append)
        if not restored:
            _require_home(connection)
        opened = _begin(connection, config, database.name, first_epoch=first_epoch) if configured else None
        if restored:
            opened = _begin_anew(connection, database.name, confirm) or opened
        installation = _identity(connection)
    seconds = time.monotonic() - began
    if as_json:
        from zerotail.cli.answers import SchemaApplyAnswer

        print_json(
            "schema-apply",
            SchemaApplyAnswer(database.name, tuple(names), opened, seconds, tuple(warnings), installation),
        )
        return
    lines = [f"{database.name}: {len(names)} files were run in {seconds:.1f} s", *map("  {}".format, names)]
    if installation:
        lines.append(f"  installation {installation}")
    lines += warnings
    if first_epoch:
        begun = f"{database.name} is the active site, in epoch {opened}"
        lines.append("something has begun already: no epoch was opened" if opened is None else begun)
    if restored:
        begun = (
            f"{database.name} is the active site of a new installation, in epoch {opened}; the old records are foreign"
        )
        lines.append("the tables lie where they always lay: nothing was changed" if opened is None else begun)
    print_answer("\n".join(lines))


@contextmanager
def _as_its_owner() -> Iterator[None]:
    """Name the way out of a right that is missing: no role of ours gives it, since there are none yet."""
    from zerotail.errors import Refused

    try:
        yield
    except Refused as refused:
        if not any(line.startswith("grant ") for line in refused.tries):
            raise
        again = "the same line with --site S --dsn DSN    # as the owner of the database, or as a superuser"
        raise Refused(refused.message, code=refused.code, tries=(again,)) from refused


def _begin_anew(connection: Connection, site: str, confirm: str | None) -> int | None:
    """Let restored tables begin a new life, once somebody has typed the site's name."""
    import sys

    from zerotail.cli.act_options import user_name
    from zerotail.core.identity import SiteName
    from zerotail.errors import Refused
    from zerotail.postgres.restored import begin_anew, may_begin_anew

    if not may_begin_anew(connection):
        return None
    line = f"zerotail schema apply --restored --site {site}"
    typed = confirm
    if typed is None:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Refused(
                "`schema apply --restored` needs --confirm where nobody can be asked.",
                code="ZT452",
                why="Whatever came after the dump is given up: the new installation takes it for foreign.",
                tries=(f"{line} --confirm {site}",),
            )
        typed = click.prompt(f"Whatever came after the dump is given up. Type {site} to go on", err=True)
    if typed != site:
        raise Refused(f"{typed!r} is not {site}; no new life has begun.", code="ZT453", tries=(line,))
    begun = begin_anew(connection, SiteName(site), user_name())
    return None if begun is None else begun[1]


def _require_home(connection: Connection) -> None:
    """`Refused` where the tables were loaded from a dump, and nobody says so."""
    from zerotail.postgres.installation import is_at_home, refusal

    if not is_at_home(connection):
        raise refusal()


def _identity(connection: Connection) -> str:
    """The identity of the installation; one that has begun without gets it now, and keeps its records."""
    from zerotail.postgres.installation import read_installation, store_installation
    from zerotail.postgres.lineage import has_begun

    if has_begun(connection):
        store_installation(connection, accepts_unmarked=True)
    return read_installation(connection).name


def _begin(connection: Connection, config: str | None, site: str, *, first_epoch: bool) -> int | None:
    """Open the first epoch, if that is wanted; where something has begun, the sites must be those that began."""
    from zerotail.config import load
    from zerotail.core.identity import SiteName
    from zerotail.postgres.lineage import has_begun, open_first_epoch
    from zerotail.postgres.site import store_numbers

    sites = list(load(config).sites)
    opened = open_first_epoch(connection, SiteName(site), sites) if first_epoch else None
    if has_begun(connection):
        store_numbers(connection, sites)
    return opened
