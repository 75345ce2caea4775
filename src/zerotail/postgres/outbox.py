"""What is owed to the outside, packed by segment, and the record of each lane's sender."""

from __future__ import annotations

from typing import Any

from zerotail.core.emission import Lane, unpack_messages
from zerotail.core.identity import EmissionNumber, Incarnation, SiteName
from zerotail.core.receiver import LaneRecord
from zerotail.errors import Broken
from zerotail.ports import (
    ClaimLane,
    Done,
    LaneClaimed,
    LaneRead,
    ReadLane,
    RecordAcknowledged,
    RecordDoubts,
    RecordIntent,
)
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.lineage import read_verified, require_at_work
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

_WHERE = "where channel = %s and partition = %s and target = %s"
# The row that holds a number is the last one that begins at or below it: found by the key, however long the history.
_MESSAGES = f"""
select first_number, count, messages from zerotail.outbox {_WHERE}
   and first_number >= coalesce((select max(first_number) from zerotail.outbox {_WHERE} and first_number <= %s), 0)
   and first_number <= %s
 order by first_number
"""
_LAST = f"select first_number + count - 1 from zerotail.outbox {_WHERE} order by first_number desc limit 1"


def read_messages(connection: Connection, lane: Lane, after: EmissionNumber, limit: int) -> list[bytes]:
    """Messages behind number `after`, in order, at most `limit`."""
    rows = connection.execute(_MESSAGES.encode(), (*lane, *lane, after + 1, after + limit), binary=True).fetchall()
    found: list[bytes] = []
    for first, count, packed in rows:
        expected = after + len(found) + 1
        if first > expected:
            raise Broken(f"lane {tuple(lane)} lacks message {expected}; the next one is {first}")
        found += unpack_messages(packed, count)[max(0, expected - first) :]
        if len(found) >= limit:
            break
    return found[:limit]


def find_last_number(connection: Connection, lane: Lane) -> EmissionNumber:
    """The last number in the outbox; 0 when it holds none of this lane."""
    row = connection.execute(_LAST.encode(), lane).fetchone()
    return EmissionNumber(row[0] if row else 0)


def claim_lane(connection: Connection, effect: ClaimLane, site: SiteName) -> LaneClaimed:
    """Become the sender of a lane: count its incarnation up, in the current epoch."""
    standing = require_at_work(connection, site)
    (incarnation,) = one_row(
        connection,
        "insert into zerotail.lane values (%s, %s, %s, %s, 1, 0, 0) on conflict (channel, partition, target) "
        "do update set epoch = excluded.epoch, incarnation = lane.incarnation + 1 returning incarnation",
        (*effect.lane, standing.epoch),
    )
    return LaneClaimed(standing, Incarnation(incarnation), read_position(connection))


def read_lane(connection: Connection, effect: ReadLane) -> LaneRead:
    """Owed messages and the lane's record, then the log's position."""
    row = connection.execute(
        f"select incarnation, acknowledged, intended from zerotail.lane {_WHERE}".encode(), effect.lane
    ).fetchone()
    incarnation, acknowledged, intended = row or (0, 0, 0)
    # Truncation removes what is acknowledged, and may have removed all of it.
    journaled = max(acknowledged, find_last_number(connection, effect.lane))
    record = LaneRecord(EmissionNumber(journaled), EmissionNumber(acknowledged), EmissionNumber(intended))
    messages = [] if effect.after is None else read_messages(connection, effect.lane, effect.after, effect.limit)
    standing = read_verified(connection)
    return LaneRead(standing, read_position(connection), Incarnation(incarnation), record, messages)


def record_intent(connection: Connection, effect: RecordIntent, site: SiteName) -> Done:
    """Numbers up to this one may have been sent, and those up to `acknowledged` have arrived."""
    change = "acknowledged = greatest(acknowledged, %s), intended = greatest(intended, %s)"
    return change_lane(connection, effect, site, change, (effect.acknowledged, effect.number))


def record_acknowledged(connection: Connection, effect: RecordAcknowledged, site: SiteName) -> Done:
    """The receiver has everything up to this number."""
    change = "acknowledged = greatest(acknowledged, %s), intended = greatest(intended, %s)"
    return change_lane(connection, effect, site, change, (effect.number, effect.number))


def change_lane(
    connection: Connection,
    effect: RecordIntent | RecordAcknowledged | RecordDoubts,
    site: SiteName,
    change: str,
    values: tuple[Any, ...],
) -> Done:
    """Change a lane's record, if its sender is still the one that speaks."""
    require_at_work(connection, site)
    changed = connection.execute(
        f"update zerotail.lane set {change} {_WHERE} and epoch = %s and incarnation = %s".encode(),
        (*values, *effect.lane, effect.epoch, effect.incarnation),
    )
    if changed.rowcount != 1:
        raise Declined("another sender is at work")
    return Done(read_position(connection))
