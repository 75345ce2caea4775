"""Rows that could not become instructions although whoever brought them was told that they were stored, and what an
operator decides about them.

1. Nothing is deleted: a row that was decided on keeps its value, with the decision, who took it and when.
2. A row is resubmitted in the transaction that stores its instruction: there are both, here and at the other site, or
   neither. So the same decision once more finds what it did, and another one is declined: no value is stored twice.
3. The new identifier is nobody's, not even that of the same bytes: a row that `submit` finds there was somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from zerotail.core.identity import Lsn, PartitionNumber, ProducerNumber, Serial, SiteName
from zerotail.ports import Result, Standing, Submit
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.feed import submit
from zerotail.postgres.lineage import read_verified
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

DROPPED, RESUBMITTED = "dropped", "resubmitted"
BEGINNING_BYTES = 200
"""So much of a value is shown."""

_LIST = """
select number, producer.name, partition, id, reason, submitted_at, found_at, octet_length(value),
       substring(value from 1 for %s), decision, decided_by, decided_at, new_id, new_partition, new_serial
  from zerotail.set_aside join zerotail.producer using (producer)
 where %s or decision = '' order by number
"""
_TAKE = """
select number, decision, decided_by, new_id, new_partition, new_serial from zerotail.set_aside
 where number = any(%s) order by number for update
"""
_DROP = """
update zerotail.set_aside set decision = 'dropped', decided_by = %s, decided_at = clock_timestamp()
 where number = any(%s) and decision = ''
"""
_RESUBMIT = """
update zerotail.set_aside
   set decision = 'resubmitted', decided_by = %s, decided_at = clock_timestamp(),
       new_id = %s, new_partition = %s, new_serial = %s
 where number = %s
"""
_WAITS = "select true from zerotail.submission where producer = %s and id = %s limit 1"
_IS_OURS = """
select xmin = pg_current_xact_id()::xid, serial, partition from zerotail.instruction where producer = %s and id = %s
"""


@dataclass(frozen=True, slots=True)
class SetAside:
    """A row that was set aside."""

    number: int
    producer: str
    partition: int
    id: str
    reason: str
    submitted_at: datetime
    found_at: datetime
    bytes: int
    beginning: str
    """Of the value."""
    decision: str
    """Empty while nothing is decided."""
    decided_by: str
    decided_at: datetime | None
    new_id: str | None
    """Under which it was resubmitted, and what it became."""
    new_partition: int | None
    new_serial: int | None


@dataclass(frozen=True, slots=True)
class Wish:
    """A row that is to be submitted under another identifier."""

    number: int
    id: str
    partition: PartitionNumber | None
    """None: the partition for which it came."""
    operator: str


class Resubmitted(Result, frozen=True):
    """The row is an instruction, locally."""

    standing: Standing
    partition: PartitionNumber
    serial: Serial
    changed: bool
    """Whether it was not one before."""
    position: Lsn


@dataclass(frozen=True, slots=True)
class _Taken:
    """A row that nobody else decides on meanwhile."""

    number: int
    decision: str
    decided_by: str
    new_id: str | None
    new_partition: int | None
    new_serial: int | None


def list_set_aside(connection: Connection, *, decided: bool = False) -> list[SetAside]:
    """What waits for a decision; with `decided` also what was decided on."""
    found = []
    for row in connection.execute(_LIST.encode(), (BEGINNING_BYTES, decided)).fetchall():
        fields = list(row)
        fields[8] = bytes(row[8]).decode("utf-8", errors="backslashreplace")
        found.append(SetAside(*fields))
    return found


def drop(connection: Connection, numbers: Sequence[int], operator: str) -> list[int]:
    """Decide that rows are not wanted; answers which were not dropped before. All of them, or none."""
    rows = _taken(connection, numbers)
    for row in rows:
        if row.decision == RESUBMITTED:
            raise Declined(f"row {row.number} was {_said(row)}")
    still_open = [row.number for row in rows if not row.decision]
    connection.execute(_DROP.encode(), (operator, still_open))
    return still_open


def resubmit(connection: Connection, wish: Wish, site: SiteName) -> Resubmitted:
    """Make an instruction of a row, as `submit` does, and note that it was decided so."""
    (row,) = _taken(connection, [wish.number])
    producer, partition, value = one_row(
        connection, "select producer, partition, value from zerotail.set_aside where number = %s", (wish.number,)
    )
    wanted = PartitionNumber(partition) if wish.partition is None else wish.partition
    if row.decision:
        if row.decision == DROPPED or (row.new_id, row.new_partition) != (wish.id, wanted):
            raise Declined(f"row {row.number} was {_said(row)}")
        return _answer(connection, wanted, Serial(row.new_serial or 0), changed=False)
    if connection.execute(_WAITS.encode(), (producer, wish.id)).fetchone():
        raise Declined(f"the identifier {wish.id} belongs to a row that waits for its number")
    stored = submit(connection, Submit(ProducerNumber(producer), wanted, wish.id, bytes(value)), site)
    ours, serial, place = one_row(connection, _IS_OURS, (producer, wish.id))
    if not ours:
        raise Declined(f"the identifier {wish.id} belongs to another instruction, serial {serial} of partition {place}")
    connection.execute(_RESUBMIT.encode(), (wish.operator, wish.id, wanted, stored.serial, wish.number))
    return _answer(connection, wanted, stored.serial, changed=True)


def _answer(connection: Connection, partition: PartitionNumber, serial: Serial, *, changed: bool) -> Resubmitted:
    return Resubmitted(read_verified(connection), partition, serial, changed, read_position(connection))


def _taken(connection: Connection, numbers: Sequence[int]) -> list[_Taken]:
    rows = [_Taken(*row) for row in connection.execute(_TAKE.encode(), (list(numbers),)).fetchall()]
    if missing := sorted(set(numbers) - {row.number for row in rows}):
        raise Declined(f"no row {', '.join(map(str, missing))} was set aside")
    return rows


def _said(row: _Taken) -> str:
    if row.decision == DROPPED:
        return f"dropped by {row.decided_by}"
    return (
        f"resubmitted by {row.decided_by}: it is {row.new_id} of partition {row.new_partition}, serial {row.new_serial}"
    )
