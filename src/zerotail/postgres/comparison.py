"""Do two sites have the same journal? Row by row, up to where both have come.

A standby may be behind: what it does not have yet is no difference. What both have must be equal in every column.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import zip_longest

from zerotail.core.continuity import SegmentRow
from zerotail.core.head import Head
from zerotail.core.identity import PartitionNumber, Position, SegmentNumber, StageName
from zerotail.postgres.connection import Connection
from zerotail.postgres.journal import find_head
from zerotail.postgres.segment import all_rows
from zerotail.postgres.verification import Place, find_places


@dataclass(frozen=True, slots=True)
class Difference:
    """The first segment in which two sites differ, and in what."""

    segment: SegmentNumber
    position: Position
    columns: tuple[str, ...]
    what: str


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one stage and partition."""

    stage: StageName
    partition: PartitionNumber
    segments_here: int
    segments_there: int
    equal_segments: int
    """So many, from the first one on, are equal."""
    chain: str
    """Behind them, in hexadecimal."""
    difference: Difference | None


def compare_journals(
    here: Connection, there: Connection, stage: str | None = None, partition: int | None = None
) -> tuple[Compared, ...]:
    """Every stage and partition that either site has."""
    places = {*find_places(here, stage, partition), *find_places(there, stage, partition)}
    return tuple(_compare(here, there, place) for place in sorted(places))


def _compare(here: Connection, there: Connection, place: Place) -> Compared:
    ours, theirs = find_head(here, *place), find_head(there, *place)
    reach = (ours.segment if ours else 0, theirs.segment if theirs else 0)
    common = SegmentNumber(min(reach))
    equal, chain, position = 0, "", Position(0)

    def compared(difference: Difference | None) -> Compared:
        return Compared(*place, *reach, equal, chain, difference)

    for expected, (left, right) in enumerate(
        zip_longest(all_rows(here, *place, until=common), all_rows(there, *place, until=common)), 1
    ):
        columns = _different_columns(left, right)
        if columns or left is None or right is None:
            number = SegmentNumber(min(row.segment for row in (left, right) if row is not None))
            return compared(
                Difference(max(number, SegmentNumber(expected)), position, columns, _told(left, right, columns))
            )
        equal, chain, position = left.segment, left.chain.hex(), left.next_position
    return compared(_different_heads(ours, theirs, position))


def _different_columns(left: SegmentRow | None, right: SegmentRow | None) -> tuple[str, ...]:
    if left is None or right is None:
        return ()
    return tuple(one.name for one in fields(SegmentRow) if getattr(left, one.name) != getattr(right, one.name))


def _told(left: SegmentRow | None, right: SegmentRow | None, columns: tuple[str, ...]) -> str:
    if left is None or right is None:
        return f"only {'this' if right is None else 'the other'} site has it"
    if "segment" in columns:
        return f"this site goes on with segment {left.segment}, the other one with {right.segment}"
    return f"they differ in {', '.join(columns)}"


def _different_heads(ours: Head | None, theirs: Head | None, position: Position) -> Difference | None:
    if ours is None or theirs is None:
        which = "this" if theirs is None else "the other"
        return Difference(SegmentNumber(0), Position(0), (), f"only {which} site has a head")
    if ours.segment != theirs.segment:
        return None  # one of them is behind
    names = ("next_position", "vector", "numbers", "chain", "output_chain", "decided_at")
    columns = tuple(name for name in names if getattr(ours, name) != getattr(theirs, name))
    if not columns:
        return None
    return Difference(ours.segment, position, columns, f"the heads differ in {', '.join(columns)}")
