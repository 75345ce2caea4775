"""Records that stopped a partition, and what operators decided about them."""

from __future__ import annotations

from zerotail.core.head import Head
from zerotail.core.identity import PartitionNumber, Position, ProducerNumber, Serial, StageName
from zerotail.core.poison import Decision, Poison, RecordName, Remedy
from zerotail.ports import Done, RecordPoison
from zerotail.postgres.connection import Connection
from zerotail.postgres.lineage import read_position, read_standing
from zerotail.postgres.transaction import Declined

_READ = """
select producer, serial, position, digest, reason, decision, replacement
  from zerotail.poison where stage = %s and partition = %s
"""
# A decision that did not help is taken back, except that a skipped or replaced record never changes again.
_RECORD = """
insert into zerotail.poison as known (stage, partition, producer, serial, position, digest, reason)
values (%s, %s, %s, %s, %s, %s, %s)
on conflict (stage, partition, producer, serial) do update
   set digest = excluded.digest, position = excluded.position, reason = excluded.reason, attempts = known.attempts + 1,
       decision = '', replacement = null, decided_by = '', decided_at = null
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
    if read_standing(connection).epoch != effect.epoch:
        raise Declined("another epoch is current")
    poison = effect.poison
    connection.execute(
        _RECORD.encode(),
        (
            effect.stage,
            effect.partition,
            poison.producer,
            poison.serial,
            poison.position,
            poison.digest,
            poison.reason,
        ),
    )
    return Done(read_position(connection))
