"""`zerotail schema`: the tables as SQL, and how they get into a database."""

from __future__ import annotations

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
@json_option
def apply(config: str | None, site: str | None, dsn: str | None, first_epoch: bool, as_json: bool) -> None:
    """Run every file against a primary, each in a transaction of its own. Running them again changes nothing."""
    import time

    from zerotail.deadline import Deadline
    from zerotail.postgres.connection import session
    from zerotail.postgres.schema import apply_schema

    if first_epoch and dsn is not None:
        raise Misused("--first-epoch needs a configuration: an epoch has the number of its site.")
    database = chosen_database(config, site, dsn)
    began, warnings = time.monotonic(), list[str]()
    with session(database.dsn, Deadline.after(ANSWER_SECONDS)) as connection:
        names = apply_schema(connection, warnings.append)
        opened = None if dsn is not None else _begin(connection, config, database.name, first_epoch=first_epoch)
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
    print_answer("\n".join(lines))


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
