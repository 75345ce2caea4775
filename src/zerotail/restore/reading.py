"""A disordered partition as a sequence in journal order: what is handed out has been proven.

    with open_partition(place) as records:
        for batch in records:
            apply(batch.column("value"))

A batch has the columns `zt` (the header), `offset` and `value`. A record leaves when the whole segment that it stands
in came to its recorded chain; until then it is held back, a segment at the most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from zerotail.core.identity import Offset, Position
from zerotail.core.record import digest_of
from zerotail.core.restoration import Restored, Statistics, bounded, unbounded
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.core.restoration.journal import rest_of
from zerotail.core.restoration.proof import DifferentSegmentError, Proof, different_record
from zerotail.deadline import Deadline
from zerotail.errors import Broken
from zerotail.postgres.connection import session, snapshot
from zerotail.postgres.reading import read_values
from zerotail.restore.plan import share_memory
from zerotail.restore.seen import Seen
from zerotail.restore.spill import SpillFolder

_CONNECT_SECONDS = 30.0
_BEGINNING = Position(0)


class HeldBack:
    """Records in order that wait until the segment they stand in is proven."""

    def __init__(self, position: Position) -> None:
        self.position = position
        """Of the first that waits."""
        self._batches: deque[pa.RecordBatch] = deque()

    def put(self, batch: pa.RecordBatch) -> None:
        """Keep the next records."""
        self._batches.append(batch)

    def release(self, proven: Position) -> Iterator[pa.RecordBatch]:
        """Those that stand before a position."""
        while self._batches and self.position < proven:
            batch = self._batches.popleft()
            rows = min(batch.num_rows, proven - self.position)
            if rows < batch.num_rows:
                self._batches.appendleft(batch.slice(rows))
            self.position = Position(self.position + rows)
            yield batch.slice(0, rows)


class InOrder(Iterator[pa.RecordBatch]):
    """The records of a partition from a position on, in journal order, each proven before it leaves."""

    def __init__(
        self,
        restored: Restored,
        proof: Proof,
        first_position: Position = _BEGINNING,
        named: Callable[[DifferentSegmentError], Broken] = lambda different: different,
    ) -> None:
        self._restored = restored
        self._named = named
        self._batches = self._proven(first_position)
        self.proof = proof

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    @property
    def statistics(self) -> Statistics:
        """What was done so far."""
        return self._restored.statistics

    @property
    def live_offset(self) -> Offset | None:
        """Where a consumer goes on in the log, behind what is journaled."""
        return self._restored.live_offset

    def _proven(self, first_position: Position) -> Iterator[pa.RecordBatch]:
        held = HeldBack(self.proof.position)
        for batch in self._restored:
            try:
                self.proof.check(batch)
            except DifferentSegmentError as different:
                raise self._named(different) from different
            held.put(batch)
            for ready in held.release(self.proof.proven_position):
                early = first_position - (held.position - ready.num_rows)
                if early < ready.num_rows:
                    yield ready.slice(max(0, early))
        self.proof.require_complete()


def open_in_order(
    seen: Seen, first_position: Position = _BEGINNING, offset: Offset | None = None, *, check_values: bool = True
) -> InOrder:
    """Begin to read the log of a place in order, by the strategy of its plan; `offset` where nothing before counts."""
    journal = seen.recorded.journal
    if first_position >= journal.order.next_position:
        start, segment = journal.order.next_position, len(journal.segments) + 1
    else:
        row = journal.segment_at(first_position)
        start, segment = row.first_position, row.segment
    order = rest_of(journal.order, start)
    if seen.plan.chosen is RestoreStrategy.BOUNDED:
        memory, limit = share_memory(journal, seen.state, seen.wish)
        log = seen.recorded.log(
            seen.place, rows_per_batch=memory.rows_per_batch, read_ahead_bytes=memory.read_ahead_bytes
        )
        spill = SpillFolder(seen.wish.spill) if seen.wish.spill is not None else None
        restored = bounded(order, log, limit, spill)
    else:
        restored = unbounded(order, seen.recorded.log(seen.place).open(offset))
    proof = Proof(journal, segment, values=check_values)
    return InOrder(restored, proof, first_position, partial(_named, seen))


def _named(seen: Seen, different: DifferentSegmentError) -> Broken:
    """The record whose digest is not that of its row, where one can be named."""
    journal, row = seen.recorded.journal, different.row
    with session(seen.place.dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
        values = read_values(connection, seen.recorded.sources, seen.place.partition, [row])
    for place, digest in enumerate(different.digests, row.first_position):
        producer, serial = journal.order.record_at(Position(place))
        stored = values.get(producer, {}).get(serial)
        if stored is not None and digest_of(stored) != digest:
            return different_record(journal, Position(place), producer, serial)
    return different
