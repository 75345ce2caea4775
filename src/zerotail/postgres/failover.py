"""What the bad day asks of a database: where it stands, steps that are done, starts, sites that came back.

Each function is the work of one transaction (`transaction.Session`), except `stop_waiting`, which changes a setting of
the server and no row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from zerotail.core.identity import Epoch, ProducerNumber, SiteName, StageName
from zerotail.deadline import Deadline
from zerotail.ports import Done, RecordRejoined, SiteObserved, StoreStart
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.lineage import OTHER_EPOCH, read_standing
from zerotail.postgres.position import read_flushed, read_position
from zerotail.postgres.promotion import is_in_recovery
from zerotail.postgres.site import read_numbers
from zerotail.postgres.synchronous import set_synchronous_standby
from zerotail.postgres.transaction import READ_ONLY, Declined, session_within

# A receiver that was started a moment ago calls itself streaming before its primary has agreed: one that is turned away
# again and again does so at each attempt.
_FOLLOWING = """
select exists (select from pg_stat_wal_receiver join pg_stat_activity using (pid)
                where status = 'streaming' and backend_start < clock_timestamp() - interval '1 s'),
       case when pg_is_in_recovery() then current_setting('primary_slot_name') else '' end,
       array(select slot_name::text from pg_replication_slots
              where slot_type = 'physical' and wal_status is distinct from 'lost')
"""


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step that a site has noted as done."""

    epoch: Epoch
    step: int
    site: SiteName
    done_at: datetime


def observe_site(connection: Connection) -> SiteObserved:
    """Where the database stands, how much of the log it holds, and how a standby gets the rest."""
    receives, slot, slots = one_row(connection, _FOLLOWING)
    standing, flushed = read_standing(connection), read_flushed(connection)
    return SiteObserved(standing, flushed, receives, slot, frozenset(slots), read_numbers(connection))


def stop_waiting(dsn: str, deadline: Deadline) -> Done:
    """Let commits return without a standby; those that wait now return and become visible (decision 0015)."""
    with session_within(dsn, deadline) as connection:
        set_synchronous_standby(connection, None)
    return Done()


def store_start(connection: Connection, effect: StoreStart) -> Done:
    """Say where a stage begins to read in this epoch."""
    stored = connection.execute(
        b"update zerotail.head set hint_log = %s, hint_offset = %s where stage = %s and partition = %s and epoch = %s",
        (effect.hint.log, effect.hint.offset, effect.stage, effect.partition, effect.epoch),
    )
    if stored.rowcount != 1:
        raise Declined(OTHER_EPOCH)
    return Done(read_position(connection))


def record_rejoined(connection: Connection, effect: RecordRejoined) -> Done:
    """Say that a site came back in this epoch, if it is still the current one."""
    standing = read_standing(connection)
    if standing.timeline is None or standing.epoch != effect.epoch:
        raise Declined(OTHER_EPOCH)
    connection.execute(
        b"insert into zerotail.rejoined values (%s, %s) on conflict (site) do update set epoch = excluded.epoch",
        (effect.rejoined, effect.epoch),
    )
    return Done(read_position(connection))


def record_steps(connection: Connection, steps: Iterable[StepDone]) -> Done:
    """Note steps as done; one that is noted already keeps its time. Declined until the epoch exists."""
    for step in steps:
        if is_in_recovery(connection):
            raise Declined(READ_ONLY)
        known = connection.execute(b"select from zerotail.epoch where epoch = %s", (step.epoch,)).fetchone()
        if known is None:
            raise Declined("the epoch is not opened yet")
        connection.execute(
            b"insert into zerotail.step (epoch, step, site, done_at) values (%s, %s, %s, %s) on conflict do nothing",
            (step.epoch, step.step, step.site, step.done_at),
        )
    return Done()


def read_steps(connection: Connection, epoch: Epoch) -> list[StepDone]:
    """The steps of an epoch that are noted as done, in order."""
    rows = connection.execute(
        b"select epoch, step, site, done_at from zerotail.step where epoch = %s order by step", (epoch,)
    ).fetchall()
    return [StepDone(Epoch(of), step, SiteName(site), done_at) for of, step, site, done_at in rows]


def find_producers(connection: Connection, stage: StageName) -> list[ProducerNumber]:
    """The numbers of the producers that a stage takes records of."""
    rows = connection.execute(b"select producer from zerotail.producer where consumer = %s order by producer", (stage,))
    return [ProducerNumber(producer) for (producer,) in rows.fetchall()]
