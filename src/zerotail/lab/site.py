"""Sites as wholes: their Kafka clusters, and which database follows which."""

from __future__ import annotations

from zerotail.core.identity import SiteName, Timeline
from zerotail.deadline import Deadline
from zerotail.lab.broker import find_cluster_id, format_broker, new_cluster_id
from zerotail.lab.database import copy_database, create_database, dsn, programs_for
from zerotail.lab.layout import OUTSIDE, SITES, Layout
from zerotail.lab.part import start_part, wait_until_ready
from zerotail.lab.process import processes_of
from zerotail.postgres.connection import session
from zerotail.postgres.lineage import open_first_epoch
from zerotail.postgres.promotion import promote
from zerotail.postgres.schema import apply_schema
from zerotail.postgres.synchronous import set_synchronous_standby, wait_until_streaming


def other_site(site: str) -> str:
    """The site that is not this one."""
    return SITES[1 - SITES.index(site)]


def start_new_broker(layout: Layout, part: str, cluster_id: str, deadline: Deadline) -> None:
    """Format a Kafka node, start it and wait until it has joined its cluster."""
    format_broker(layout, layout.broker(part), cluster_id)
    start_part(layout, part)
    wait_until_ready(layout, part, deadline)


def start_first_database(layout: Layout, site: str, deadline: Deadline) -> None:
    """Create and start the database that is primary first, with our tables and the first epoch."""
    place = layout.database(site)
    create_database(layout, place, deadline)
    start_part(layout, place.part)
    wait_until_ready(layout, place.part, deadline)
    with session(dsn(place), deadline) as primary:
        apply_schema(primary)
        open_first_epoch(primary, SiteName(site), [SiteName(one) for one in SITES])


def attach_standby(layout: Layout, site: str, deadline: Deadline) -> None:
    """Make the site's database a synchronous standby of the other site's, by a fresh copy through the link."""
    primary, standby = layout.database(other_site(site)), layout.database(site)
    copy_database(layout, standby, dsn(primary, seen_from=site), deadline)
    start_part(layout, standby.part)
    wait_until_ready(layout, standby.part, deadline)
    with session(dsn(primary), deadline) as connection:
        wait_until_streaming(connection, site, deadline)
        set_synchronous_standby(connection, site)


def promote_site(layout: Layout, site: str, deadline: Deadline) -> Timeline:
    """Make the site's database the primary; answers its new timeline."""
    return promote(dsn(layout.database(site)), deadline)


def stop_site_database(layout: Layout, site: str, deadline: Deadline) -> bool:
    """Stop the site's database cleanly, its standby gets the end of the log; False when it did not run."""
    part = layout.database(site).part
    if not any(process.part == part for process in processes_of(layout.path)):
        return False
    data = layout.folder_of(part) / "data"
    programs_for(layout, part).run("pg_ctl", "-D", data, "-m", "fast", "-w", "stop", deadline=deadline)
    return True


def prepare_part(layout: Layout, part: str, deadline: Deadline) -> None:
    """Give a part new, empty data: the outside's database, or a node of its site's cluster, as far as that exists."""
    if part == f"{OUTSIDE}.postgres":
        create_database(layout, layout.database(OUTSIDE), deadline)
    else:
        place = layout.broker(part)
        format_broker(layout, place, find_cluster_id(layout, place.cluster) or new_cluster_id())


def is_prepared(layout: Layout, part: str) -> bool:
    """Whether a part has data to start from."""
    kind = part.split(".")[1] if "." in part else part
    return kind not in ("kafka", "postgres") or (layout.folder_of(part) / "data").is_dir()
