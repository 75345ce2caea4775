"""Epochs of a database, opened as an act does it."""

from __future__ import annotations

from support.standings import EAST
from zerotail.core.epoch import Durability
from zerotail.core.identity import SiteName, epoch_of
from zerotail.ports import OpenEpoch
from zerotail.postgres.lineage import open_epoch, read_standing
from zerotail.postgres.transaction import Session

_PATIENCE_SECONDS = 20.0


def open_next(database: str, site: SiteName = EAST, number: int = 0) -> object:
    """Open the next epoch, as a takeover does, under the number of a site; its answer."""
    session = Session(database, patience_seconds=_PATIENCE_SECONDS)
    try:
        standing = session.read(read_standing)
        wanted = OpenEpoch(site, standing.epoch, epoch_of(200, number), Durability.GATED, "takeover", "a test")  # type: ignore[union-attr]
        return session.write(lambda connection: open_epoch(connection, wanted))
    finally:
        session.close()
