"""Which databases a command looks at: those of the configuration's sites, or those that are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from zerotail.errors import Misused

ANSWER_SECONDS = 10.0
"""How long a database may take to accept a session."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database to look at, under the name that is shown."""

    name: str
    dsn: str


def database_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--config`, `--site` and `--dsn`: one database."""
    options = (
        click.option(
            "--config", "config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml."
        ),
        click.option("--site", metavar="S", help="The site whose database is meant; else the preferred one."),
        click.option("--dsn", metavar="DSN", help="A database by its connection string, without a configuration."),
    )
    for option in reversed(options):
        function = option(function)
    return function


peer_option = click.option("--peer-dsn", metavar="DSN", help="The other site's database, with --dsn.")


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--stage` and `--partition`."""
    function = click.option("--partition", type=click.IntRange(0), metavar="P", help="This partition only.")(function)
    return click.option("--stage", metavar="S", help="This stage only.")(function)


def chosen_database(config: str | None, site: str | None, dsn: str | None) -> Database:
    """The database that is meant."""
    if dsn is not None:
        if config is not None or site is not None:
            raise Misused("--dsn names the database itself; it does not go with --config or --site.")
        return _named(dsn)
    return _databases_of(config, site)[0]


def chosen_pair(
    config: str | None, site: str | None, dsn: str | None, peer_dsn: str | None
) -> tuple[Database, Database | None]:
    """The database that is meant and the other site's; that is None only when `--dsn` came without `--peer-dsn`."""
    if dsn is not None:
        return chosen_database(config, site, dsn), None if peer_dsn is None else _named(peer_dsn)
    if peer_dsn is not None:
        raise Misused("--peer-dsn goes with --dsn; a configuration names both sites.")
    return _databases_of(config, site)


def _databases_of(config: str | None, site: str | None) -> tuple[Database, Database]:
    from zerotail.config import load

    configuration = load(config)
    chosen = configuration.preferred_site if site is None else configuration.require_site(site)
    other = configuration.other_site(chosen)
    here, there = (Database(name, configuration.sites[name].database.dsn.reveal()) for name in (chosen, other))
    return here, there


def chosen_transforms(config: str | None, dsn: str | None) -> dict[str, Callable[[bytes], bytes]]:
    """What producers make of their rows, by name; only a configuration knows, `--dsn` means that there are none."""
    if dsn is not None:
        return {}
    from zerotail.cli.configured import load_with_code
    from zerotail.code import load_object

    return {
        str(name): load_object(producer.transform, f"producer {name}")
        for name, producer in load_with_code(config).producers.items()
        if producer.transform is not None
    }


def _named(dsn: str) -> Database:
    from zerotail.postgres.connection import where

    return Database(where(dsn), dsn)
