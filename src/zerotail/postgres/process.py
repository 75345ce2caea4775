"""What processes say of themselves, stored and read.

Reports are for people who look: nothing is decided by them, so they are written without ceremony, many in one
statement, and the newest word replaces the one before. `since` moves only when what a process does, or why, has
changed; times are the database's own, because processes run on several hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from psycopg.types.json import Jsonb

from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.postgres.connection import Connection

Role = Literal["producer", "stage", "emitter", "follower", "watcher"]
Doing = Literal["working", "waiting", "stopped"]

UPSTREAM = "upstream"
"""As what a standby's emitter says, of no partition, that it must not follow the other site any more."""
_WHOLE = -1
"""Stands in the table for a process that has no partition of its own."""
_WRITE = """
insert into zerotail.process (site, role, name, partition, pid, host, doing, reason, since, counters)
select site, role, name, partition, pid, host, doing, reason,
       clock_timestamp() - make_interval(secs => for_seconds), counters
  from jsonb_to_recordset(%s) as said(
       site text, role text, name text, partition integer, pid integer, host text, doing text, reason text,
       for_seconds double precision, counters jsonb)
    on conflict (site, role, name, partition) do update
   set pid = excluded.pid, host = excluded.host, doing = excluded.doing, reason = excluded.reason,
       since = case when (process.doing, process.reason) = (excluded.doing, excluded.reason)
                    then process.since else excluded.since end,
       seen_at = excluded.seen_at, counters = excluded.counters
"""
_READ = """
select site, role, name, nullif(partition, -1), pid, host, doing, reason, since,
       greatest(extract(epoch from clock_timestamp() - seen_at), 0)::float8, counters
  from zerotail.process order by site, role, name, partition
"""


@dataclass(frozen=True, slots=True)
class Report:
    """One word of a process."""

    site: SiteName
    role: Role
    name: str
    partition: PartitionNumber | None
    pid: int
    host: str
    doing: Doing
    reason: str
    for_seconds: float
    """How long it has been doing this, when the report is written."""
    counters: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """The last word of a process, and how long ago that was."""

    site: str
    role: str
    name: str
    partition: int | None
    pid: int
    host: str
    doing: str
    reason: str
    since: datetime
    silent_seconds: float
    counters: dict[str, int | float | None]
    """Sums and measures, by name; None is one that nobody knows."""


def write_reports(connection: Connection, reports: Sequence[Report]) -> None:
    """Store the newest word of each; there is at most one report for each process."""
    rows = [
        {**asdict(report), "partition": _WHOLE if report.partition is None else report.partition} for report in reports
    ]
    connection.execute(_WRITE.encode(), (Jsonb(rows),))


def read_reports(connection: Connection) -> tuple[ProcessSeen, ...]:
    """The last word of every process."""
    return tuple(ProcessSeen(*row) for row in connection.execute(_READ.encode()).fetchall())
