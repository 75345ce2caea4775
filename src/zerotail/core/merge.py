"""Records of several producers, each producer's in serial order, merged into the order of the journal.

Each producer has a queue of Arrow pieces. Because a producer's records come in serial order, one number says
what is at hand of it: the first serial that is not. The order says where that missing record stands, and the
lowest such place over all producers is how far the merge can go: no record has to be looked at for that. What
is ready leaves in batches, as slices where runs are long, else gathered by one `take`.

1. `position` is the next to leave; everything before it has left, in order, once.
2. A queue holds consecutive serials, from the first that has not left on.
3. After `ready` was run through, the record at `position` is not at hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from zerotail.core.identity import Offset, Position, ProducerNumber, Serial
from zerotail.core.order import Numbers, Order
from zerotail.errors import Refused

ROWS_PER_BATCH = 65536
BYTES_PER_BATCH = 64 * 2**20
"""About the most that leaves in one gathered batch: Arrow's 32-bit offsets end at 2 GiB."""
_NOWHERE = Offset(0)  # for records that were not read from a log
_LONG_RUN = 512
"""From this mean length of runs on, slices cost less than gathering row by row."""


@dataclass(slots=True)
class _Queue:
    """What is at hand of one producer."""

    next_serial: int
    """The first that has not left."""
    end_serial: int
    """The first that is not at hand."""
    missing_at: Position
    """The position of the first that is not at hand; the order's end if there is none."""
    pieces: deque[tuple[pa.RecordBatch, Offset]] = field(default_factory=deque)
    rows_gone: int = 0
    """How many rows of the first piece have left."""
    held_bytes: int = 0

    def pull(self, rows: int) -> list[pa.RecordBatch]:
        """The next rows, as slices of the pieces; a piece's memory is given back when its last row leaves."""
        self.next_serial += rows
        slices = []
        while rows:
            piece, _ = self.pieces[0]
            taken = min(rows, piece.num_rows - self.rows_gone)
            slices.append(piece.slice(self.rows_gone, taken))
            self.rows_gone += taken
            rows -= taken
            if self.rows_gone == piece.num_rows:
                self.pieces.popleft()
                self.rows_gone = 0
                self.held_bytes -= piece.nbytes
        return slices


class Merge:
    """The records at hand, and how far the order is complete.

    >>> from zerotail.core.order import Runs
    >>> a, b = ProducerNumber(1), ProducerNumber(2)
    >>> merge = Merge(Order(Runs.of([(a, 1), (b, 1)])))
    >>> merge.put(b, pa.record_batch({"value": ["b1"]}))
    >>> merge.blocked_on()
    (1, 1)
    >>> merge.put(a, pa.record_batch({"value": ["a1"]}))
    >>> [batch.to_pydict() for batch in merge.ready()]
    [{'value': ['a1', 'b1']}]
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.position = order.first_position
        self._queues = {
            producer: _Queue(before + 1, before + 1, self._place(producer, before + 1))
            for producer, before in order.vector_before.items()
        }
        self._by_index = [*self._queues.values()]

    def next_serial(self, producer: ProducerNumber) -> Serial:
        """The first serial of a producer that has not left."""
        return Serial(self._queues[producer].next_serial)

    def expected(self, producer: ProducerNumber) -> Serial:
        """The serial that `put` takes next of a producer."""
        return Serial(self._queues[producer].end_serial)

    def blocked_on(self) -> tuple[ProducerNumber, Serial] | None:
        """The next record to leave that is not at hand, None when the order is complete."""
        position = self.complete_to()
        return None if position == self.order.next_position else self.order.record_at(position)

    def complete_to(self, arrivals: dict[ProducerNumber, int] | None = None) -> Position:
        """The first position whose record is not at hand, or would not be after these counts of arrivals."""
        news = arrivals or {}
        places = [
            self._place(producer, queue.end_serial + news[producer]) if producer in news else queue.missing_at
            for producer, queue in self._queues.items()
        ]
        return min(places, default=self.order.next_position)

    def put(self, producer: ProducerNumber, payload: pa.RecordBatch, offset: Offset = _NOWHERE) -> None:
        """Take in a producer's next records, read from `offset` on; those behind the order's end are left."""
        queue = self._queues[producer]
        payload = payload.slice(0, max(0, self.order.vector_after[producer] + 1 - queue.end_serial))
        if payload.num_rows:
            queue.pieces.append((payload, offset))
            queue.held_bytes += payload.nbytes
            queue.end_serial += payload.num_rows
            queue.missing_at = self._place(producer, queue.end_serial)

    def ready(self) -> Iterator[pa.RecordBatch]:
        """Everything up to the first record that is not at hand, in order."""
        complete = self.complete_to()
        rows = self._rows_per_batch()
        while self.position < complete:
            first, self.position = self.position, Position(min(complete, self.position + rows))
            begin, end, lengths = self.order.runs_between(first, self.position)
            if self.position - first >= _LONG_RUN * len(lengths):
                owners = self.order.indexes[begin:end].tolist()
                for owner, length in zip(owners, lengths.tolist(), strict=True):
                    yield from self._by_index[owner].pull(length)
            else:
                yield self._gather(begin, end, lengths)

    def _rows_per_batch(self) -> int:
        held_rows = sum(queue.end_serial - queue.next_serial for queue in self._by_index)
        held_bytes = sum(queue.held_bytes for queue in self._by_index)
        return max(1, min(ROWS_PER_BATCH, BYTES_PER_BATCH * held_rows // max(1, held_bytes)))

    def _gather(self, begin: int, end: int, lengths: Numbers) -> pa.RecordBatch:
        """The rows of these runs: the pieces laid end to end by producer, and taken in order."""
        owners = self.order.indexes[begin:end]
        totals = np.zeros(len(self._by_index), dtype=np.int64)
        np.add.at(totals, owners, lengths)
        next_serials = np.array([queue.next_serial for queue in self._by_index], dtype=np.int64)
        bases = np.cumsum(totals) - totals - next_serials
        pieces = [
            part for queue, total in zip(self._by_index, totals.tolist(), strict=True) for part in queue.pull(total)
        ]
        serials = np.maximum(self.order.first_serials[begin:end], next_serials[owners])
        before = np.cumsum(lengths) - lengths
        rows = np.repeat(bases[owners] + serials - before, lengths) + np.arange(int(lengths.sum()))
        source = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
        return source.take(pa.array(rows))

    def count_in_order(self, producers: Numbers, serials: Numbers) -> int:
        """How many of these records, from the first on, are just the next to leave, and not at hand yet."""
        blocked = self.blocked_on()
        if not len(producers) or blocked != (producers[0], serials[0]):
            return 0
        end = min(self.position + len(producers), self._first_held(), self.order.next_position)
        next_producers, next_serials = self.order.records_between(self.position, end)
        rows = end - self.position
        same = (next_producers == producers[:rows]) & (next_serials == serials[:rows])
        return rows if same.all() else int(same.argmin())

    def pass_by(self, rows: int) -> None:
        """The next so many records leave without having been put in: they were read in order."""
        counts = self.order.counts_between(self.position, self.position + rows)
        self.position = Position(self.position + rows)
        for producer, count in zip(self.order.producers, counts.tolist(), strict=True):
            if count:
                queue = self._queues[producer]
                queue.next_serial += count
                queue.end_serial += count
                queue.missing_at = self._place(producer, queue.end_serial)

    def drop(self, producer: ProducerNumber) -> Offset:
        """Forget what is at hand of a producer, one record at least; where its oldest piece was read."""
        queue = self._queues[producer]
        _, offset = queue.pieces[0]
        queue.pieces.clear()
        queue.rows_gone = queue.held_bytes = 0
        queue.end_serial = queue.next_serial
        queue.missing_at = self._place(producer, queue.end_serial)
        return offset

    def take_out(self, producer: ProducerNumber) -> list[pa.RecordBatch]:
        """The same, and give them away, in serial order."""
        queue = self._queues[producer]
        held = [piece.slice(queue.rows_gone if not place else 0) for place, (piece, _) in enumerate(queue.pieces)]
        self.drop(producer)
        return held

    def held_messages(self, producer: ProducerNumber) -> int:
        """How many records of a producer are at hand."""
        queue = self._queues[producer]
        return queue.end_serial - queue.next_serial

    def held_bytes(self, producer: ProducerNumber) -> int:
        """The bytes of the pieces that hold them."""
        return self._queues[producer].held_bytes

    def refusal(self) -> Refused:
        """Says which record is missing, when nothing more can be read."""
        return missing_record(self.order, self.complete_to())

    def _first_held(self) -> Position:
        held = [(p, q.next_serial) for p, q in self._queues.items() if q.pieces]
        return min((self._place(*record) for record in held), default=self.order.next_position)

    def _place(self, producer: ProducerNumber, serial: int) -> Position:
        found = self.order.find_position(producer, serial)
        return self.order.next_position if found is None else found


def missing_record(order: Order, position: Position) -> Refused:
    """The refusal for a record that the journal has and no source gives."""
    producer, serial = order.record_at(position)
    return Refused(
        f"record (producer {producer}, serial {serial}), at position {position} of the journal, is missing",
        why="Its consequences may be outside already; going on without it would change the order behind it.",
        tries=["zerotail restore plan    to see what the log lacks", "zerotail restore run     to refill it"],
    )
