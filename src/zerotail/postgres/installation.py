"""The identity of the installation in the database: made once, read by all who read where the database stands."""

from __future__ import annotations

import os

from zerotail.core.installation import IDENTITY_BYTES, MARK_BYTES, UNMARKED, Installation
from zerotail.postgres.connection import Connection, one_row


def read_installation(connection: Connection) -> Installation:
    """Whose tables these are; without an identity where the table is missing or empty."""
    if one_row(connection, "select to_regclass('zerotail.installation')")[0] is None:
        return UNMARKED
    row = connection.execute(b"select identity, accepts_unmarked from zerotail.installation").fetchone()
    return UNMARKED if row is None else Installation(bytes(row[0]), row[1])


def store_installation(connection: Connection, *, accepts_unmarked: bool) -> Installation:
    """Give the installation its identity, if it has none yet."""
    with connection.transaction():
        connection.execute(b"lock table zerotail.installation in exclusive mode")
        connection.execute(
            b"insert into zerotail.installation (identity, accepts_unmarked, home) values (%s, %s, zerotail.home()) "
            b"on conflict do nothing",
            (new_identity(), accepts_unmarked),
        )
        return read_installation(connection)


def new_identity() -> bytes:
    """An identity that nobody has; its mark is never the one that stands for none."""
    while True:
        identity = os.urandom(IDENTITY_BYTES)
        if any(identity[:MARK_BYTES]):
            return identity
