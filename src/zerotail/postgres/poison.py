"""Records that stopped a partition, and what operators decided about them: what a stage writes and reads.

The operator's side is in `postgres/remedy.py`.
"""

from __future__ import annotations

from zerotail.core.head import Head
from zerotail.core.identity import PartitionNumber, Position, ProducerNumber, Serial, StageName
from zerotail.core.poison import Decision, Poison, RecordName, Remedy
from zerotail.ports import Done, RecordPoison
from zerotail.postgres.connection import Connection
from zerotail.postgres.lineage import require_own_timeline
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

_READ = """
select producer, serial, position, digest, reason, decision, replacement
  from zerotail.poison where stage = %s and partition = %s
"""
# The head stands still until the end of the transaction: nobody who was replaced takes a decision back.
_HOLD = """
select from zerotail.head
 where stage = %s and partition = %s and epoch = %s and segment = %s and chain = %s and claim = %s for share
"""
# A decision that did not help is taken back; to skip a record always helps, so that one stays.
_RECORD = """
insert into zerotail.poison as known (stage, partition, producer, serial, position, digest, reason)
values (%s, %s, %s, %s, %s, %s, %s)
on conflict (stage, partition, producer, serial) do update
   set digest = excluded.digest, position = excluded.position, reason = excluded.reason, attempts = known.attempts + 1,
       decision = '', replacement = null, decided_by = '', decided_at = null
 where known.decision <> 'skip' or known.digest <> excluded.digest
"""


def read_poison(
    connection: Connection, stage: StageName, partition: PartitionNumber, head: Head
) -> tuple[dict[RecordName, Decision], Poison | None]:
    """Decisions about records that the head has not passed yet, and the record at which the partition stands."""
    decisions: dict[RecordName, Decision] = {}
    stopped: Poison | None = None
    for producer, serial, position, digest, reason, decision, replacement in connection.execute(
        _READ.encode(), (stage, partition)
    ).fetchall():
        name = (ProducerNumber(producer), Serial(serial))
        if serial <= head.vector.get(name[0], 0):
            continue
        if decision == "":
            stopped = Poison(*name, Position(position), digest, reason)
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
    found = (poison.producer, poison.serial, poison.position, poison.digest, poison.reason)
    connection.execute(_RECORD.encode(), (*place, *found))
    return Done(read_position(connection))
