"""The proof that a restored sequence is the one the journal recorded: its hash chain, computed again.

Every batch that leaves a restoration, or that a refill is about to write, passes here. The headers say which records
they are and what their values' digests are; with the runs of the journal that is all the chain was computed from. A
segment that is complete must come to the recorded link, and the first that does not stops everything, with its
coordinates. Nothing is kept but the digests of the segment that is not complete yet.

1. Records stand at the positions that the order gives them, none missing, none twice.
2. chain(n), computed from headers alone, is the recorded one for every segment that has left (I3, I11).
3. With `values`, each value has the digest that its header says; that costs a hash per value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from zerotail.core.chain import GENESIS, Chain, link, packed_input_content
from zerotail.core.continuity import SegmentRow
from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.core.record import DIGEST_BYTES, HEADER_NAME, Digests, Headers, decode_column, digest_column
from zerotail.core.restoration.journal import Journal
from zerotail.errors import Broken

VALUE_NAME = "value"
_RUN = np.dtype([("producer", "<u4"), ("serial", "<u8"), ("count", "<u4")])


class DifferentSegmentError(Broken):
    """A segment whose records do not come to its recorded chain; the digests say what was found."""

    def __init__(self, journal: Journal, row: SegmentRow, found: Chain, digests: bytes) -> None:
        super().__init__(
            f"segment {row.segment} of {journal.stage} partition {journal.partition}, positions {row.first_position} "
            f"to {row.next_position - 1}, comes to chain {found.hex()[:16]}…; recorded is {row.chain.hex()[:16]}…",
            code="ZT641",
            why="A record has another value than the one that was applied, or the journal was changed.",
            tries=["zerotail journal verify", "zerotail journal compare"],
        )
        self.row = row
        self.digests = [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]


class Proof:
    """Follows the batches of one restoration from the first position on, or from a segment's first."""

    def __init__(self, journal: Journal, first_segment: int = 1, *, values: bool = False) -> None:
        self._journal = journal
        self._values = values
        self._next = first_segment - 1
        """Index of the segment that is not complete."""
        before = journal.segments[self._next - 1] if self._next else None
        self.position = before.next_position if before else journal.order.first_position
        self.chain: Chain = before.chain if before else GENESIS
        self._digests = bytearray()

    @property
    def segments(self) -> int:
        """How many have been proven, counted from the journal's first."""
        return self._next

    @property
    def proven_position(self) -> Position:
        """The position behind the last segment that has been proven."""
        return Position(self.position - len(self._digests) // DIGEST_BYTES)

    def check(self, batch: pa.RecordBatch) -> None:
        """Follow the next records; `Broken` when they are not what the journal recorded."""
        headers = decode_column(batch.column(HEADER_NAME))
        if not len(headers):
            return
        self._require_places(headers)
        if self._values:
            self._require_values(headers.digests, batch.column(VALUE_NAME))
        self.follow(headers.digests)

    def follow(self, digests: Digests) -> None:
        """Follow the digests of the next records, whose places are known to be right."""
        self._digests += digests.astype("<u8", copy=False).tobytes()
        self.position = Position(self.position + len(digests))
        while self._next < len(self._journal.segments):
            row = self._journal.segments[self._next]
            needed = row.order.records * DIGEST_BYTES
            if len(self._digests) < needed:
                break
            self._link(row, bytes(self._digests[:needed]))
            del self._digests[:needed]
            self._next += 1

    def require_complete(self) -> None:
        """`Broken` unless the whole journal has passed."""
        if self._next != len(self._journal.segments):
            raise Broken(
                f"the restored sequence of {self._journal.stage} partition {self._journal.partition} ends at position "
                f"{self.position}; the journal ends at {self._journal.order.next_position}",
                code="ZT643",
                tries=["zerotail journal verify"],
            )

    def _link(self, row: SegmentRow, digests: bytes) -> None:
        content = packed_input_content(
            row.epoch,
            row.segment,
            row.first_position,
            row.decided_at,
            row.version,
            _packed_runs(self._journal, row),
            digests,
            row.decided,
        )
        found = link(self.chain, content)
        if found != row.chain:
            raise DifferentSegmentError(self._journal, row, found, digests)
        self.chain = found

    def _require_places(self, headers: Headers) -> None:
        order, first = self._journal.order, self.position
        end = min(order.next_position, first + len(headers))
        producers, serials = order.records_between(first, end)
        count = end - first
        same = (headers.producers[:count] == producers) & (headers.serials[:count] == serials)
        if count < len(headers) or not same.all():
            place = count if same.all() else int(same.argmin())
            name = f"producer {headers.producers[place]}, serial {headers.serials[place]}"
            raise Broken(
                f"at position {first + place} of {self._journal.stage} partition {self._journal.partition} stands "
                f"the record ({name}), which is not the journal's",
                code="ZT643",
            )

    def _require_values(self, digests: Digests, values: pa.Array) -> None:
        wrong = np.flatnonzero(digest_column(values) != digests)
        if len(wrong):
            raise self.different_record(Position(self.position + int(wrong[0])))

    def different_record(self, position: Position) -> Broken:
        """The error for a record whose value has another digest than its header says, or its row."""
        producer, serial = self._journal.order.record_at(position)
        return different_record(self._journal, position, producer, serial)


def different_record(journal: Journal, position: Position, producer: ProducerNumber, serial: Serial) -> Broken:
    """The error for a record that has another value than the one that was applied."""
    return Broken(
        f"the record (producer {producer}, serial {serial}) at position {position} of {journal.stage} partition "
        f"{journal.partition}, in segment {journal.segment_at(position).segment}, has another digest than is recorded",
        code="ZT642",
        why="Applying it would give another state than the one whose consequences are outside.",
        tries=["zerotail journal verify", "zerotail restore run --topic P --strategy ordered-refill --into NEW"],
    )


def _packed_runs(journal: Journal, row: SegmentRow) -> bytes:
    """The runs of a segment as the chain counts them, cut out of the whole order."""
    order = journal.order
    if not row.order.records:
        return b""
    begin, end, lengths = order.runs_between(row.first_position, row.next_position)
    runs = np.empty(end - begin, dtype=_RUN)
    runs["producer"] = order.runs.producers[begin:end]
    runs["serial"] = order.first_serials[begin:end]
    runs["serial"][0] += row.first_position - order.starts[begin]
    runs["count"] = lengths
    return runs.tobytes()
