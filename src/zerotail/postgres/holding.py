"""What a copy holds, in numbers: for an operator who must decide whether to go on with it.

Everything stands in the heads and in the newest epoch: the look is cheap, however long the history is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber, Position, StageName
from zerotail.core.staleness import CopyAge
from zerotail.postgres.connection import Connection

_EPOCH = b"""
select opened_at, pg_last_xact_replay_timestamp() from zerotail.epoch order by epoch desc limit 1
"""
_HEADS = b"select stage, partition, next_position, numbers from zerotail.head order by stage, partition"


@dataclass(frozen=True, slots=True)
class Applied:
    """How far a stage and partition has come."""

    stage: StageName
    partition: PartitionNumber
    next_position: Position


@dataclass(frozen=True, slots=True)
class Emitted:
    """The last number of a lane."""

    channel: ChannelName
    partition: PartitionNumber
    target: PartitionNumber
    number: EmissionNumber


@dataclass(frozen=True, slots=True)
class Holding:
    """What a database holds of the newest epoch that it knows."""

    opened_at: datetime | None
    """When that epoch was opened."""
    changed_at: datetime | None
    """When the last change was committed that came from the primary; None when nobody knows."""
    applied: tuple[Applied, ...] = ()
    emitted: tuple[Emitted, ...] = ()


_AGE = b"""
select extract(epoch from now.at - pg_last_xact_replay_timestamp())::float8,
       extract(epoch from now.at - greatest(
           (select max(seen_at) from zerotail.process where pg_is_in_recovery() or process.site = last.site),
           (select max(last_msg_receipt_time) from pg_stat_wal_receiver where status = 'streaming')))::float8,
       extract(epoch from now.at - last.opened_at)::float8
  from (select clock_timestamp() as at) as now
 cross join (select site, opened_at from zerotail.epoch order by epoch desc limit 1) as last
"""
"""A promoted database is written to by processes of its own site: theirs say nothing of the other one."""


def read_age(connection: Connection) -> CopyAge:
    """How old the newest thing in the database is, by its own clock."""
    changed, heard, opened = connection.execute(_AGE).fetchall()[0]
    return CopyAge(changed, heard, opened)


def read_holding(connection: Connection) -> Holding:
    """Look it up."""
    opened_at, changed_at = connection.execute(_EPOCH).fetchone() or (None, None)
    heads = connection.execute(_HEADS).fetchall()
    return Holding(
        opened_at,
        changed_at,
        tuple(Applied(stage, partition, position) for stage, partition, position, _ in heads),
        tuple(
            Emitted(channel, partition, target, number)
            for _, partition, _, numbers in heads
            for channel, target, number in numbers
        ),
    )
