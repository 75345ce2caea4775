"""What of a lab is alive, and in which role; looking changes nothing and never hangs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from zerotail.deadline import Deadline
from zerotail.errors import ZerotailError
from zerotail.lab.database import dsn
from zerotail.lab.layout import SITES, Layout
from zerotail.lab.link import LinkControl, LinkStatus
from zerotail.lab.process import Process, processes_of
from zerotail.postgres.connection import one_row, session

_PATIENCE_SECONDS = 2.0
State = Literal["running", "stopped", "down", "on demand"]


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part of the lab."""

    part: str
    state: State
    pids: tuple[int, ...]
    ports: tuple[int, ...]
    role: str = ""
    """Of a database: primary or standby, and for whom it waits or whom it follows."""


@dataclass(frozen=True, slots=True)
class LabStatus:
    """The whole lab; `well` when everything that `up` starts runs."""

    folder: str
    well: bool
    parts: tuple[PartStatus, ...]
    link: LinkStatus | None


def observe_lab(layout: Layout) -> LabStatus:
    """Look at every part."""
    running = processes_of(layout.path)
    # Each may keep silent for as long as our patience lasts, so all are asked at the same time.
    with ThreadPoolExecutor() as pool:
        link = pool.submit(_observe_link, layout)
        parts = tuple(pool.map(lambda part: _observe_part(layout, part, running), layout.parts))
    well = all(status.state in ("running", "on demand") for status in parts)
    return LabStatus(layout.folder, well, parts, link.result())


def _observe_part(layout: Layout, part: str, running: list[Process]) -> PartStatus:
    mine = [process for process in running if process.part == part]
    state = state_of(mine, on_demand=part in layout.on_demand)
    site = part.split(".", maxsplit=1)[0]
    role = _role(layout, site) if part.endswith(".postgres") and state == "running" and site in SITES else ""
    return PartStatus(part, state, tuple(process.pid for process in mine), layout.ports_of(part), role)


def state_of(processes: list[Process], *, on_demand: bool = False) -> State:
    """One word for a part's processes."""
    if not processes:
        return "on demand" if on_demand else "down"
    return "stopped" if all(process.state == "T" for process in processes) else "running"


def _role(layout: Layout, site: str) -> str:
    """Primary or standby, asked of the server itself; `no answer` when it is silent."""
    query = (
        "select pg_is_in_recovery(), current_setting('synchronous_standby_names'), "
        "(select count(*) from pg_stat_replication where state = 'streaming'), "
        "exists (select from pg_stat_wal_receiver where status = 'streaming')"
    )
    try:
        with session(dsn(layout.database(site)), Deadline.after(_PATIENCE_SECONDS)) as connection:
            recovering, waits_for, followers, follows = one_row(connection, query)
    except ZerotailError:
        return "no answer"
    if recovering:
        return "standby, follows" if follows else "standby, follows nobody"
    names = f"commits wait for {waits_for}" if waits_for else "commits wait for nobody"
    return f"primary, {names}, {followers} following"


def _observe_link(layout: Layout) -> LinkStatus | None:
    try:
        return LinkControl(layout.link_control_port).status(deadline=Deadline.after(_PATIENCE_SECONDS))
    except ZerotailError:
        return None
