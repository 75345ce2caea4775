"""The sites in the database: stored once, when something begins, and read by whoever opens an epoch."""

from __future__ import annotations

from collections.abc import Sequence

from zerotail.core.identity import Epoch, SiteName
from zerotail.core.site import number_sites, require_known_sites
from zerotail.postgres.connection import Connection, one_row


def read_numbers(connection: Connection) -> dict[SiteName, int]:
    """Which sites there are, and their numbers; none where the table is missing or empty."""
    if one_row(connection, "select to_regclass('zerotail.site')")[0] is None:
        return {}
    rows = connection.execute(b"select site, number from zerotail.site").fetchall()
    return {SiteName(site): number for site, number in rows}


def store_numbers(connection: Connection, sites: Sequence[SiteName]) -> dict[SiteName, int]:
    """Give each site its number, if none has one yet; `Refused` when the database knows other sites."""
    with connection.transaction():
        connection.execute(b"lock table zerotail.site in exclusive mode")
        numbers = read_numbers(connection)
        if not numbers:
            opened = connection.execute(b"select epoch, site from zerotail.epoch").fetchall()
            numbers = number_sites(sites, [(Epoch(epoch), SiteName(site)) for epoch, site in opened])
            for site, number in numbers.items():
                connection.execute(b"insert into zerotail.site (site, number) values (%s, %s)", (site, number))
        require_known_sites(sites, numbers)
        return numbers
