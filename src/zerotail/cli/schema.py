"""`zerotail schema`: the tables as SQL, and how they get into a database."""

from __future__ import annotations

import click

from zerotail.cli.database_options import ANSWER_SECONDS, chosen_database, database_options
from zerotail.cli.output import json_option, print_answer, print_json


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


@command.command("apply", epilog="Example:  zerotail schema apply --site east")
@database_options
@json_option
def apply(config: str | None, site: str | None, dsn: str | None, as_json: bool) -> None:
    """Run every file against a primary, each in a transaction of its own. Running them again changes nothing."""
    import time

    from zerotail.deadline import Deadline
    from zerotail.postgres.connection import session
    from zerotail.postgres.schema import apply_schema

    database = chosen_database(config, site, dsn)
    began = time.monotonic()
    with session(database.dsn, Deadline.after(ANSWER_SECONDS)) as connection:
        names = apply_schema(connection)
    seconds = time.monotonic() - began
    if as_json:
        from zerotail.cli.answers import SchemaApplyAnswer

        print_json("schema-apply", SchemaApplyAnswer(database.name, tuple(names), seconds))
    else:
        print_answer(
            "\n".join([f"{database.name}: {len(names)} files were run in {seconds:.1f} s", *map("  {}".format, names)])
        )
