"""`zerotail version`."""

from __future__ import annotations

import click

from zerotail import __version__
from zerotail.cli.output import json_option, print_answer, print_json

_PARTS = ("confluent-kafka", "psycopg", "pyspark", "pyarrow", "numpy")


@click.command("version", epilog="Example:  zerotail version --json")
@click.option("--config", metavar="PATH", help="Also the identity of the installation at both sites of this file.")
@json_option
def command(config: str | None, as_json: bool) -> None:
    """The version of zerotail and of the parts it runs with."""
    import platform

    from zerotail.jars.lock import locked_jars

    parts = {"python": platform.python_version()}
    parts |= {name: found for name in _PARTS if (found := _installed(name))}
    parts["kafka"] = next(jar.version for jar in locked_jars() if jar.artifact == "kafka_2.13")
    if as_json:
        from zerotail.cli.answers import VersionAnswer

        print_json("version", VersionAnswer(__version__, parts, None if config is None else _installations(config)))
        return
    lines = [f"zerotail {__version__}", *(f"  {name} {parts[name]}" for name in parts)]
    if config is not None:
        lines += [f"  installation at {site}: {identity}" for site, identity in _installations(config).items()]
    print_answer("\n".join(lines))


def _installations(config: str) -> dict[str, str]:
    """Of each site: the identity, or why nobody knows it."""
    from zerotail.config import load
    from zerotail.deadline import Deadline
    from zerotail.errors import ZerotailError
    from zerotail.postgres.connection import session
    from zerotail.postgres.installation import read_installation

    found = {}
    for name, site in load(config).sites.items():
        try:
            with session(site.database.dsn.reveal(), Deadline.after(2)) as connection:
                found[str(name)] = read_installation(connection).name or "none yet"
        except ZerotailError as error:
            found[str(name)] = f"? {error.message}"
    return found


def _installed(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
