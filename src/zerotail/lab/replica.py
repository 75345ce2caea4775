"""A replica inside a site: a copy of the site's database that stands still, and can take the place of its primary.

It is what a high-availability manager promotes when the primary is gone. How far it is behind is up to whoever keeps
it: it has what the primary had when it was kept.
"""

from __future__ import annotations

import os
import shutil

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused
from zerotail.lab.database import database_user, dsn, programs_for
from zerotail.lab.layout import Layout
from zerotail.lab.part import start_part
from zerotail.lab.process import kill
from zerotail.lab.site import other_site
from zerotail.postgres.connection import answers, session
from zerotail.postgres.promotion import promote

_SLOT = b"""
select pg_create_physical_replication_slot(%s, true)
 where not exists (select from pg_replication_slots where slot_name = %s)
"""
_SETTINGS = "primary_conninfo = ''\nprimary_slot_name = ''\n"


def keep_replica(layout: Layout, site: str, deadline: Deadline) -> None:
    """Copy the site's database as it is now; an older copy is replaced."""
    part = f"{site}.postgres"
    copy = layout.folder_of(part) / "replica"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(mode=0o700)
    if os.geteuid() == 0:
        user = database_user()
        os.chown(copy, user.pw_uid, user.pw_gid)
    source = dsn(layout.database(site))
    programs_for(layout, part).run(
        "pg_basebackup",
        *("-D", copy, "-X", "stream", "-c", "fast", "--no-sync", "-d", source),
        deadline=deadline,
    )


def promote_replica(layout: Layout, site: str, deadline: Deadline) -> None:
    """Kill the site's primary and let the replica take its place, on a new timeline. It keeps a slot for the other
    site, as a manager does that knows of it.
    """
    part = f"{site}.postgres"
    folder = layout.folder_of(part)
    if not (folder / "replica").exists():
        raise Refused(
            f"{site} has no replica inside.", code="ZT212", tries=(f"zerotail lab status --dir {layout.folder}",)
        )
    kill(layout.path, {part}, deadline)
    shutil.rmtree(folder / "data")
    (folder / "replica").rename(folder / "data")
    (folder / "data" / "standby.signal").touch()
    with (folder / "data" / "postgresql.auto.conf").open("a") as settings:
        settings.write(_SETTINGS)
    start_part(layout, part)
    there = dsn(layout.database(site))
    wait_until(f"{part} answers", lambda: answers(there), deadline)
    promote(there, deadline)
    other = other_site(site)
    with session(there, deadline) as primary:
        primary.execute(_SLOT, (other, other))
