"""What an operator sees of stopped partitions, and the operator's word on the record at which one stopped.

1. A decision is taken only about a record that stopped its partition and that no segment has taken since, and it is
   bound to the digest that the operator saw (I22).
2. A decision stands until the stage carries it out. The same word once more changes nothing; another one is declined.
3. Who decided and when is stored beside it, and stays there after the record was taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from zerotail.core.admission import FOREIGN
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.postgres.connection import Connection
from zerotail.postgres.reading import find_sources, read_range
from zerotail.postgres.transaction import Declined

RETRY, SKIP, REPLACE = "retry", "skip", "replace"

_LIST = """
select poison.stage, poison.partition, poison.producer, coalesce(producer.name, ''), serial, position, digest, reason,
       attempts, found_at, decision, replacement, decided_by, poison.decided_at, at_door,
       serial <= coalesce((head.vector ->> poison.producer::text)::bigint, 0)
       or (poison.producer = 0 and (decision = 'skip' or log <> coalesce(head.hint_log, log))) as taken
  from zerotail.poison left join zerotail.producer using (producer)
       left join zerotail.head on head.stage = poison.stage and head.partition = poison.partition
 where (%s::text is null or poison.stage = %s)
"""
_ORDER = " order by poison.stage, poison.partition, found_at"
_ONE = " and poison.partition = %s and poison.producer = %s and serial = %s for update of poison"
_DECIDE = """
update zerotail.poison
   set decision = %s, replacement = %s, decided_by = %s, decided_at = clock_timestamp()
 where stage = %s and partition = %s and producer = %s and serial = %s
"""


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A record that stopped its partition."""

    stage: StageName
    partition: PartitionNumber
    producer: ProducerNumber
    producer_name: str
    serial: Serial
    position: int
    digest: str
    reason: str
    attempts: int
    since: datetime
    decision: str
    """Empty while nothing is decided."""
    replacement: str | None
    decided_by: str
    decided_at: datetime | None
    at_door: bool
    """Whether its producer could not make a record of it."""
    taken: bool
    """Whether a segment holds the record by now."""
    value: str | None = None
    """As stored, in front of any transform; None when it has no row here."""

    @property
    def waits(self) -> bool:
        """Whether its partition, or its producer there, stands still until somebody decides."""
        return not self.decision and not self.taken


@dataclass(frozen=True, slots=True)
class Wish:
    """What an operator wants to become of one record, and the digest of the record that the operator saw."""

    stage: StageName
    partition: PartitionNumber
    producer: ProducerNumber
    serial: Serial
    digest: str
    remedy: str
    replacement: bytes | None
    operator: str


def list_spoiled(connection: Connection, stage: StageName | None = None, *, taken: bool = False) -> list[Spoiled]:
    """Records that partitions wait for, with their values; those that were taken since as well, if asked for."""
    found = [_spoiled(*row) for row in connection.execute((_LIST + _ORDER).encode(), (stage, stage)).fetchall()]
    return [_with_value(connection, one) for one in found if taken or not one.taken]


def find_spoiled(
    connection: Connection, stage: StageName, partition: PartitionNumber, producer: ProducerNumber, serial: Serial
) -> Spoiled | None:
    """One of them."""
    for one in list_spoiled(connection, stage, taken=True):
        if (one.partition, one.producer, one.serial) == (partition, producer, serial):
            return one
    return None


def find_producer(connection: Connection, name_or_number: str) -> ProducerNumber | None:
    """A producer by its name, or else by its number; 0 is nobody's, of records that are no instructions."""
    if name_or_number == str(FOREIGN):
        return FOREIGN
    row = connection.execute(
        b"select producer from zerotail.producer where name = %s or producer::text = %s order by name <> %s limit 1",
        (name_or_number, name_or_number, name_or_number),
    ).fetchone()
    return None if row is None else ProducerNumber(row[0])


def decide(connection: Connection, wish: Wish) -> bool:
    """Store a decision; False when it was there already. Declined when it cannot be taken any more."""
    place = (wish.stage, wish.partition, wish.producer, wish.serial)
    row = connection.execute((_LIST + _ONE).encode(), (wish.stage, *place)).fetchone()
    if row is None:
        raise Declined(
            f"{wish.stage} partition {wish.partition} has not stopped at serial {wish.serial} of producer "
            f"{wish.producer}"
        )
    known = _spoiled(*row)
    if known.digest != wish.digest:
        raise Declined(f"the record has digest {known.digest}, not {wish.digest}: it is not the one that you saw")
    if (known.decision, row[11]) == (wish.remedy, wish.replacement):
        return False
    if known.taken:
        raise Declined(f"the record was taken meanwhile{_said(known)}")
    if wish.remedy == RETRY and known.at_door and known.position >= 0:
        raise Declined("its record has no value that could be tried again: skip it, or replace it")
    if wish.remedy == REPLACE and known.producer == FOREIGN:
        raise Declined("it is no instruction, so nothing can take its place: skip it, or have it tried again")
    if known.decision:
        raise Declined(f"it is decided otherwise already{_said(known)}")
    connection.execute(_DECIDE.encode(), (wish.remedy, wish.replacement, wish.operator, *place))
    return True


def _said(known: Spoiled) -> str:
    return f": {known.decision} by {known.decided_by}" if known.decision else ""


def _spoiled(*row: object) -> Spoiled:
    fields = list(row)
    fields[6] = bytes(row[6]).hex()  # type: ignore[call-overload]
    fields[11] = None if row[11] is None else _text(bytes(row[11]))  # type: ignore[call-overload]
    return Spoiled(*fields)  # type: ignore[arg-type]


def _with_value(connection: Connection, one: Spoiled) -> Spoiled:
    source = find_sources(connection, one.stage, one.partition).get(one.producer)
    lane = None if source is None else source.lane
    value = read_range(connection, lane, one.producer, one.partition, one.serial, one.serial).get(one.serial)
    return one if value is None else replace(one, value=_text(value))


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="backslashreplace")
