"""Lanes that have stopped until a person decides: stored, so that no restart goes on behind what was found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, PartitionNumber
from zerotail.ports import Done
from zerotail.postgres.connection import Connection
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

_WHERE = "where channel = %s and partition = %s and target = %s"


@dataclass(frozen=True, slots=True)
class LaneStop:
    """Why a lane has stopped, and when."""

    channel: ChannelName
    partition: PartitionNumber
    target: int
    reason: str
    since: datetime


def read_stop(connection: Connection, lane: Lane) -> str:
    """Why a lane has stopped; empty when it has not."""
    row = connection.execute(f"select stopped from zerotail.lane {_WHERE}".encode(), lane).fetchone()
    return str(row[0]) if row else ""


def read_stops(connection: Connection, channel: ChannelName | None = None) -> list[LaneStop]:
    """Every lane that has stopped, in order."""
    query = (
        "select channel, partition, target, stopped, stopped_at from zerotail.lane "
        "where stopped <> '' and (%s::text is null or channel = %s) order by channel, partition, target"
    )
    return [LaneStop(*row) for row in connection.execute(query.encode(), (channel, channel)).fetchall()]


def store_stop(connection: Connection, lane: Lane, reason: str) -> Done:
    """Nothing is sent on a lane from now on; the first reason stays."""
    connection.execute(
        f"update zerotail.lane set stopped = %s, stopped_at = clock_timestamp() {_WHERE} and stopped = ''".encode(),
        (reason, *lane),
    )
    return Done(read_position(connection))


def resume_lanes(
    connection: Connection, channel: ChannelName, partition: PartitionNumber, operator: str
) -> list[LaneStop]:
    """Let the lanes of a channel and partition go on; declined when none of them has stopped."""
    stopped = [one for one in read_stops(connection, channel) if one.partition == partition]
    if not stopped:
        raise Declined(f"{channel} partition {partition} has not stopped")
    connection.execute(
        b"update zerotail.lane set stopped = '', resumed_by = %s where channel = %s and partition = %s",
        (operator, channel, partition),
    )
    return stopped
