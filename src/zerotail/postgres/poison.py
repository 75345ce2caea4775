"""Records that stopped a partition, and what operators decided about them: what a stage writes and reads.

The operator's side is in `postgres/remedy.py`.

A row of which its producer cannot make a record is poison as well, at the door: it stops that producer and partition,
and the stage goes on with what others send. When somebody has decided to skip or to replace it, its record goes out
without a value, so that serials stay dense; no stage can take that, other than by the decision.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.core.head import Head
from zerotail.core.identity import PartitionNumber, Position, ProducerNumber, Serial, StageName
from zerotail.core.poison import Decision, Poison, RecordName, Remedy
from zerotail.ports import Done, RecordPoison
from zerotail.postgres.connection import Connection
from zerotail.postgres.lineage import require_own_timeline
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

_AT_THE_DOOR = -1
"""The position of a record that no stage has met yet."""
_READ = """
select producer, serial, position, digest, reason, decision, replacement, log
  from zerotail.poison where stage = %s and partition = %s
"""
# The head stands still until the end of the transaction: nobody who was replaced takes a decision back.
_HOLD = """
select from zerotail.head
 where stage = %s and partition = %s and epoch = %s and segment = %s and chain = %s and claim = %s for share
"""
# A decision that did not help is taken back; to skip a record always helps, so that one stays, and so does one that was
# taken at the door, until the stage has heard of it.
_RECORD = """
insert into zerotail.poison as known (stage, partition, producer, serial, position, digest, reason, log)
values (%s, %s, %s, %s, %s, %s, %s, %s)
on conflict (stage, partition, producer, serial) do update
   set digest = excluded.digest, position = excluded.position, log = excluded.log,
       attempts = known.attempts + (not {unheard})::int,
       reason = case when {unheard} then known.reason else excluded.reason end,
       decision = case when {unheard} then known.decision else '' end,
       replacement = case when {unheard} then known.replacement end,
       decided_by = case when {unheard} then known.decided_by else '' end,
       decided_at = case when {unheard} then known.decided_at end,
       at_door = known.at_door and known.digest = excluded.digest
 where known.decision <> 'skip' or known.digest <> excluded.digest
"""
_UNHEARD = "(known.at_door and known.position < 0 and known.digest = excluded.digest and known.decision = 'replace')"
_RECORD_AT_THE_DOOR = f"""
insert into zerotail.poison as known (stage, partition, producer, serial, position, digest, reason, at_door)
select consumer, %s, producer, %s, {_AT_THE_DOOR}, %s, %s, true from zerotail.producer where producer = %s
on conflict (stage, partition, producer, serial) do update
   set digest = excluded.digest, position = excluded.position, reason = excluded.reason, at_door = true,
       attempts = known.attempts + 1, decision = '', replacement = null, decided_by = '', decided_at = null
"""
_FIND_AT_THE_DOOR = """
select true from zerotail.poison join zerotail.producer using (producer)
 where stage = consumer and producer = %s and partition = %s and serial = %s
   and at_door and decision in ('skip', 'replace') and digest = %s
"""


def read_poison(
    connection: Connection, stage: StageName, partition: PartitionNumber, head: Head
) -> tuple[dict[RecordName, Decision], Poison | None]:
    """Decisions about records that the head has not passed yet, and the record at which the partition stands."""
    decisions: dict[RecordName, Decision] = {}
    stopped: Poison | None = None
    here = "" if head.hint is None else head.hint.log
    for producer, serial, position, digest, reason, decision, replacement, log in connection.execute(
        _READ.encode(), (stage, partition)
    ).fetchall():
        name = (ProducerNumber(producer), Serial(serial))
        if serial <= head.vector.get(name[0], 0):
            continue
        if log and here and log != here:
            continue  # it lies in another log: that of the other site, or one that is not there any more
        if decision == "" and position == _AT_THE_DOOR:
            continue
        if decision == "":
            stopped = Poison(*name, Position(position), digest, reason, log)
        elif decision != "retry":
            decisions[name] = Decision(Remedy(decision), digest, replacement or b"")
    return decisions, stopped


def record_poison(connection: Connection, effect: RecordPoison) -> Done:
    """The partition has stopped at this record."""
    place, expected, poison = (effect.stage, effect.partition), effect.expected, effect.poison
    token = (expected.epoch, expected.segment, expected.chain, expected.claim)
    if connection.execute(_HOLD.encode(), (*place, *token)).fetchone() is None:
        raise Declined("the head has moved")
    require_own_timeline(connection)
    found = (poison.producer, poison.serial, poison.position, poison.digest, poison.reason, poison.log)
    connection.execute(_RECORD.format(unheard=_UNHEARD).encode(), (*place, *found))
    return Done(read_position(connection))


def forget_other_logs(connection: Connection, stage: StageName, log: str) -> Done:
    """Records of a log that the stage does not read any more stop it no longer; decided by nobody."""
    require_own_timeline(connection)
    connection.execute(
        b"update zerotail.poison set decision = 'retry', decided_by = 'another log', decided_at = clock_timestamp() "
        b"where stage = %s and log not in ('', %s) and decision = ''",
        (stage, log),
    )
    return Done(read_position(connection))


@dataclass(frozen=True, slots=True)
class Unfit:
    """A row of which its producer cannot make a record, and why."""

    producer: ProducerNumber
    partition: PartitionNumber
    serial: Serial
    digest: bytes
    """Of the row."""
    reason: str


def record_at_the_door(connection: Connection, unfit: Unfit) -> Done:
    """The producer and partition have stopped at this row; what was decided about it before did not help."""
    require_own_timeline(connection)
    found = (unfit.partition, unfit.serial, unfit.digest, unfit.reason, unfit.producer)
    connection.execute(_RECORD_AT_THE_DOOR.encode(), found)
    return Done(read_position(connection))


def is_decided_at_the_door(
    connection: Connection, producer: ProducerNumber, partition: PartitionNumber, serial: Serial, digest: bytes
) -> bool:
    """Whether somebody has decided about this very row, so that its record goes out without a value."""
    wanted = (producer, partition, serial, digest)
    return connection.execute(_FIND_AT_THE_DOOR.encode(), wanted).fetchone() is not None
