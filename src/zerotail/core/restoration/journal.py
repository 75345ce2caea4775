"""The order journal of one stage and partition as a restoration needs it: the whole order, and its segments.

The segments are joined into one `Order`, and each is kept beside it, because the proof goes segment by segment. A
journal that does not hang together is not used at all: what is missing or out of place is named with its segment and
position before the first record is read.

1. Segments are 1, 2, 3, …; positions, serials, epochs and times go on where the segment before ended (I2, I3).
2. The order ends where the last segment ends, which is where the head stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from zerotail.core.chain import GENESIS, Chain
from zerotail.core.continuity import Fault, SegmentRow, find_misplaced
from zerotail.core.head import Head, first_head
from zerotail.core.identity import Epoch, PartitionNumber, Position, Serial, StageName
from zerotail.core.order import Numbers, Order, Runs, concatenate
from zerotail.errors import Broken

_BYTES_PER_RUN = 66
"""Of an order in memory: two arrays of its runs, four of its index."""
_BYTES_PER_SEGMENT = 1_500


@dataclass(frozen=True)
class Journal:
    """What a stage took of one partition, in order, up to its head."""

    stage: StageName
    partition: PartitionNumber
    order: Order
    segments: tuple[SegmentRow, ...]

    @property
    def chain(self) -> Chain:
        """The chain behind the last segment."""
        return self.segments[-1].chain if self.segments else GENESIS

    @property
    def held_bytes(self) -> int:
        """About the memory that it takes."""
        return _BYTES_PER_RUN * len(self.order.runs) + _BYTES_PER_SEGMENT * len(self.segments)

    @cached_property
    def _starts(self) -> Numbers:
        return np.array([row.first_position for row in self.segments], dtype=np.int64)

    @cached_property
    def _epochs(self) -> Numbers:
        return np.array([row.epoch for row in self.segments], dtype=np.int64)

    def segment_at(self, position: Position) -> SegmentRow:
        """The segment that a position lies in."""
        return self.segments[int(np.searchsorted(self._starts, position, side="right")) - 1]

    def epochs_between(self, first_position: int, next_position: int) -> Numbers:
        """The epoch of each of consecutive positions."""
        places = np.searchsorted(self._starts, np.arange(first_position, next_position), side="right") - 1
        return self._epochs[places]


def join_segments(stage: StageName, partition: PartitionNumber, rows: Iterable[SegmentRow], head: Head) -> Journal:
    """The journal of all segments up to the head; `Broken` at the first thing that does not fit."""
    segments = []
    parts = []
    reached = first_head(Epoch(0), ())
    for row in rows:
        fault = find_misplaced(reached, row)
        if fault is not None:
            raise damaged(stage, partition, fault)
        try:
            runs, _ = row.serials()
        except Broken as broken:
            what = f"its order cannot be decoded: {broken.message}"
            raise damaged(stage, partition, Fault("order", row.segment, row.first_position, what)) from broken
        segments.append(row)
        parts.append(runs)
        last = {producer: until for producer, _, until in row.serial_ranges()}
        reached = replace(
            reached,
            epoch=row.epoch,
            segment=row.segment,
            next_position=row.next_position,
            vector={**reached.vector, **last},
            decided_at=row.decided_at,
        )
    if reached.segment != head.segment:
        what = f"segment {reached.segment + 1} is missing; the head stands at segment {head.segment}"
        raise damaged(stage, partition, Fault("segments", head.segment, reached.next_position, what))
    if reached.next_position != head.next_position:
        what = f"the segments end at position {reached.next_position}; the head says {head.next_position}"
        raise damaged(stage, partition, Fault("head", head.segment, reached.next_position, what))
    return Journal(stage, partition, Order(concatenate(parts)), tuple(segments))


def rest_of(order: Order, position: Position) -> Order:
    """What an order holds from a position on, as an order that begins there.

    >>> from zerotail.core.order import Runs
    >>> rest = rest_of(Order(Runs.of([(1, 2), (2, 2), (1, 1)])), Position(3))
    >>> rest.runs, rest.vector_before
    (Runs(2×1 1×1), {1: 2, 2: 1})
    """
    if position == order.first_position:
        return order
    gone = order.counts_between(order.first_position, position).tolist()
    before = {
        producer: Serial(last + count)
        for (producer, last), count in zip(order.vector_before.items(), gone, strict=True)
    }
    if position == order.next_position:
        return Order(Runs.of([]), before=before, first_position=position)
    begin, end, lengths = order.runs_between(position, order.next_position)
    return Order(Runs(order.runs.producers[begin:end], lengths), before=before, first_position=position)


def damaged(stage: StageName, partition: PartitionNumber, fault: Fault) -> Broken:
    """The error for a journal that is not what it was."""
    return Broken(
        f"the journal of {stage} partition {partition} is damaged at segment {fault.segment}, position "
        f"{fault.position}: {fault.what}",
        code="ZT640",
        why="Whatever order would come out, nobody could say that it is the one that had consequences.",
        tries=["zerotail journal verify", "zerotail journal compare"],
    )
