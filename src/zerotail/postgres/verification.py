"""Is the journal what it was? Everything that the chains cover, computed again from the tables, in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zerotail.core.continuity import Fault, find_wrong_head, follow
from zerotail.core.head import Head, first_head
from zerotail.core.identity import EmissionNumber, Epoch, PartitionNumber, Position, SegmentNumber, StageName
from zerotail.postgres.connection import Connection
from zerotail.postgres.journal import find_head
from zerotail.postgres.reading import read_contents
from zerotail.postgres.segment import all_rows

_PLACES = """
select stage, partition from zerotail.head union select stage, partition from zerotail.segment order by stage, partition
"""

Place = tuple[StageName, PartitionNumber]


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of one stage and partition: how far its journal is right, and the first thing that is not."""

    stage: StageName
    partition: PartitionNumber
    segments: int
    """So many, from the first one on, are right."""
    records: int
    chain: str
    """Behind them, in hexadecimal."""
    fault: Fault | None


def find_places(connection: Connection, stage: str | None = None, partition: int | None = None) -> Iterator[Place]:
    """Every stage and partition that has a head or a segment; all of them, or those that are asked for."""
    for found_stage, found_partition in connection.execute(_PLACES.encode()).fetchall():
        if stage in (None, found_stage) and partition in (None, found_partition):
            yield StageName(found_stage), PartitionNumber(found_partition)


def verify_partition(connection: Connection, stage: StageName, partition: PartitionNumber) -> Verified:
    """Walk over all segments of a stage and partition, to the head."""
    stored = find_head(connection, stage, partition)
    lanes = dict.fromkeys(stored.numbers if stored else (), EmissionNumber(0))
    reached: Head = first_head(Epoch(0), ())

    def verified(fault: Fault | None) -> Verified:
        return Verified(stage, partition, reached.segment, reached.next_position, reached.chain.hex(), fault)

    rows = all_rows(connection, stage, partition)
    for row, content in read_contents(connection, stage, partition, rows, lanes):
        behind = follow(reached, row, content)
        if isinstance(behind, Fault):
            return verified(behind)
        reached = behind
    if stored is None:
        return verified(Fault("head", SegmentNumber(0), Position(0), "there are segments, and no head"))
    return verified(find_wrong_head(reached, stored))
