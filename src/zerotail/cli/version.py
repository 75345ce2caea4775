"""`zerotail version`."""

from __future__ import annotations

import click

from zerotail import __version__
from zerotail.cli.output import json_option, print_answer, print_json

_PARTS = ("confluent-kafka", "psycopg", "pyspark", "pyarrow", "numpy")


@click.command("version", epilog="Example:  zerotail version --json")
@json_option
def command(as_json: bool) -> None:
    """The version of zerotail and of the parts it runs with."""
    import platform

    from zerotail.jars.lock import locked_jars

    parts = {"python": platform.python_version()}
    parts |= {name: found for name in _PARTS if (found := _installed(name))}
    parts["kafka"] = next(jar.version for jar in locked_jars() if jar.artifact == "kafka_2.13")
    if as_json:
        from zerotail.cli.answers import VersionAnswer

        print_json("version", VersionAnswer(__version__, parts))
    else:
        print_answer(f"zerotail {__version__}\n" + "\n".join(f"  {name} {parts[name]}" for name in parts))


def _installed(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
