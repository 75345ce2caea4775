"""Bring a site's database back as standby of the other site's."""

from __future__ import annotations

from zerotail.deadline import Deadline
from zerotail.errors import Refused
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.lab.process import kill
from zerotail.lab.site import attach_standby, other_site
from zerotail.postgres.connection import session
from zerotail.postgres.promotion import is_in_recovery

_PATIENCE_SECONDS = 10.0


def rejoin_site(layout: Layout, site: str, deadline: Deadline) -> None:
    """Replace the site's database by a fresh copy of the other site's primary and wait until commits wait for it."""
    primary = other_site(site)
    # Asked through the link, as the copy will be: nothing is killed that could not come back.
    with session(dsn(layout.database(primary), seen_from=site), Deadline.after(_PATIENCE_SECONDS)) as connection:
        if is_in_recovery(connection):
            raise Refused(
                f"{primary}'s database is a standby itself, there is nothing to copy from.",
                code="ZT213",
                tries=[
                    f"zerotail lab promote {primary} --dir {layout.folder}",
                    f"zerotail lab status --dir {layout.folder}",
                ],
            )
    kill(layout.path, {f"{site}.postgres"}, deadline)
    attach_standby(layout, site, deadline)
