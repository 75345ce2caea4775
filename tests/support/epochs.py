"""Epochs of a database, opened as an act does it."""

from __future__ import annotations

from support.standings import EAST
from zerotail.core.epoch import Durability
from zerotail.core.identity import SiteName, epoch_of
from zerotail.ports import OpenEpoch
from zerotail.postgres.connection import Connection
from zerotail.postgres.lineage import open_epoch, read_standing, write_life
from zerotail.postgres.transaction import Session

_PATIENCE_SECONDS = 20.0


def live_for_ever(connection: Connection) -> None:
    """In a database of a test's own that has an epoch: it stays verified, however often its server is started anew."""
    write_life(connection)
    connection.execute(
        b"create or replace function zerotail.life_in_force(unverified boolean default false) returns uuid "
        b"language sql stable as $$ select nonce from zerotail.life order by number desc limit 1 $$"
    )


def open_next(database: str, site: SiteName = EAST, number: int = 0) -> object:
    """Open the next epoch, as a takeover does, under the number of a site; its answer."""
    session = Session(database, patience_seconds=_PATIENCE_SECONDS)
    try:
        standing = session.read(read_standing)
        wanted = OpenEpoch(site, standing.epoch, epoch_of(200, number), Durability.GATED, "takeover", "a test")  # type: ignore[union-attr]
        return session.write(lambda connection: open_epoch(connection, wanted))
    finally:
        session.close()
