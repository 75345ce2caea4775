"""The identity of the installation in the database: made once, read by all who read where the database stands."""

from __future__ import annotations

import os

from zerotail.core.installation import IDENTITY_BYTES, MARK_BYTES, UNMARKED, Installation
from zerotail.errors import Refused
from zerotail.postgres.connection import Connection, one_row

RESTORED = "ZT318"


def read_installation(connection: Connection) -> Installation:
    """Whose tables these are; without an identity where the table is missing or empty."""
    if one_row(connection, "select to_regclass('zerotail.installation')")[0] is None:
        return UNMARKED
    row = connection.execute(b"select identity, accepts_unmarked from zerotail.installation").fetchone()
    return UNMARKED if row is None else Installation(bytes(row[0]), row[1])


def require_home(home: str | None, *place: object) -> None:
    """`Refused` when the identity was made in another place than where its table lies: server, database, table."""
    if home is not None and home != "/".join(map(str, place)):
        raise refusal()


def refusal() -> Refused:
    """What is said of tables that were loaded from a dump."""
    return Refused(
        "the tables of this database were loaded from a dump, and nobody has said so yet: nothing works with them.",
        code=RESTORED,
        why="What came after the dump is still in topics and at receivers, under the numbers that come next here.",
        tries=("zerotail schema apply --restored --site S    # S: the site whose database this is",),
    )


def is_at_home(connection: Connection) -> bool:
    """Whether the tables lie where their identity was made, if they have one."""
    if one_row(connection, "select to_regclass('zerotail.installation')")[0] is None:
        return True
    return bool(
        one_row(connection, "select not exists (select from zerotail.installation where home <> zerotail.home())")[0]
    )


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
