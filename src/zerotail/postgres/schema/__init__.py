"""The tables, as numbered SQL files that a DBA can read and run; each may be run again."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from psycopg.errors import Diagnostic

from zerotail.postgres.connection import Connection


def schema_files() -> list[tuple[str, str]]:
    """Name and text of every file, in order."""
    found = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".sql")]
    return [(entry.name, entry.read_text()) for entry in sorted(found, key=lambda entry: entry.name)]


def apply_schema(connection: Connection, warn: Callable[[str], None] = lambda _: None) -> list[str]:
    """Run every file, each in a transaction of its own; answers their names. `warn` hears what a superuser has to run
    when whoever applies may not.
    """

    def heed(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warn(notice.message_primary or "")

    names = []
    connection.add_notice_handler(heed)
    try:
        for name, text in schema_files():
            with connection.transaction():
                connection.execute(text.encode())
            names.append(name)
    finally:
        connection.remove_notice_handler(heed)
    return names
