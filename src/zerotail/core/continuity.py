"""Does a journal hang together? One segment after another, computed again from what is stored.

The walk begins with the head in front of the first segment and gives, for each stored segment, either the head behind
it or the **fault** that shows that something was changed, lost or put in another place. Nothing that a row says about
itself is believed before it follows from the rows before it:

1. segments are 1, 2, 3, …, positions are contiguous, epoch and time never fall (I3);
2. per producer, serials go on where the vector stands (I2), and every record has its row (I4);
3. per lane, emission numbers go on where the last segment left them;
4. both chains, computed from values and messages, are the recorded ones (I3, I11).

The hashes of a segment's content need its values and nothing before it, so they may be computed side by side; the walk
itself needs a few numbers per segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from zerotail.core.chain import Chain, Run, input_content, link, output_content
from zerotail.core.emission import LaneKey, Owed
from zerotail.core.head import Head
from zerotail.core.identity import EmissionNumber, Epoch, Position, ProducerNumber, SegmentNumber, Serial
from zerotail.core.order import Numbers, Runs
from zerotail.core.poison import Decided, RecordName
from zerotail.core.record import digest_of
from zerotail.core.segment import SegmentOrder, decode_order
from zerotail.errors import Broken

Values = Mapping[ProducerNumber, Mapping[Serial, bytes]]
"""Values of records, by producer and serial."""


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment as the journal stores it."""

    segment: SegmentNumber
    epoch: Epoch
    first_position: Position
    order: SegmentOrder
    first_serials: tuple[Serial, ...]
    """Per producer of the order."""
    decided_at: int
    version: str
    chain: Chain
    output_chain: Chain
    decided: tuple[Decided, ...] = ()

    @property
    def next_position(self) -> Position:
        """The position behind its last record."""
        return Position(self.first_position + self.order.records)

    def serials(self) -> tuple[Runs, Numbers]:
        """Its runs, and the first serial of each; `Broken` when the order cannot be decoded."""
        if len(self.first_serials) != len(self.order.producers):
            raise Broken(f"it has {len(self.order.producers)} producers and {len(self.first_serials)} first serials")
        runs = decode_order(self.order)
        firsts = np.empty(len(runs), dtype=np.int64)
        for producer, first in zip(self.order.producers, self.first_serials, strict=True):
            own = runs.producers == producer
            firsts[own] = first + np.cumsum(runs.counts[own]) - runs.counts[own]
        return runs, firsts

    def runs(self) -> tuple[Run, ...]:
        """Its runs as the chain counts them."""
        runs, firsts = self.serials()
        columns = (runs.producers.tolist(), firsts.tolist(), runs.counts.tolist())
        return tuple((ProducerNumber(p), Serial(s), count) for p, s, count in zip(*columns, strict=True))

    def serial_ranges(self) -> list[tuple[ProducerNumber, Serial, Serial]]:
        """Per producer the first and the last serial; that the columns fit together, `serials` looks at."""
        counted = zip(self.order.producers, self.first_serials, self.order.counts, strict=False)
        return [(producer, first, Serial(first + count - 1)) for producer, first, count in counted]


@dataclass(frozen=True, slots=True)
class Content:
    """What the stored values and messages of one segment come to."""

    taken: bytes | None
    """The hash of its input; None when it cannot be computed, for the reason in `problem`."""
    owed: bytes
    lanes: Mapping[LaneKey, tuple[EmissionNumber, int]]
    """Per lane the first number and the count of messages."""
    problem: str = ""
    record: RecordName | None = None
    """The record that the problem is about."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing that is wrong, and where."""

    rule: str
    segment: SegmentNumber
    position: Position
    what: str
    record: RecordName | None = None


def content_of(row: SegmentRow, values: Values, owed: Owed) -> Content:
    """The hashes of one segment, from the values of its records and the messages of the outbox."""
    counted = {lane: (first, len(messages)) for lane, (first, messages) in owed.items()}
    emitted = output_content(owed)
    try:
        runs = row.runs()
    except Broken as broken:
        return Content(None, emitted, counted, f"its order cannot be decoded: {broken.message}")
    digests = []
    for producer, first, count in runs:
        stored = values.get(producer, {})
        for serial in map(Serial, range(first, first + count)):
            value = stored.get(serial)
            if value is None:
                record = (producer, serial)
                return Content(None, emitted, counted, f"producer {producer} has no row with serial {serial}", record)
            digests.append(digest_of(value))
    taken = input_content(
        row.epoch, row.segment, row.first_position, row.decided_at, row.version, runs, digests, row.decided
    )
    return Content(taken, emitted, counted)


def follow(before: Head, row: SegmentRow, content: Content) -> Head | Fault:
    """The head behind a stored segment, or what is wrong with it."""
    return find_misplaced(before, row) or _find_unlinked(before, row, content) or _behind(before, row, content)


def find_wrong_head(reached: Head, stored: Head) -> Fault | None:
    """What the stored head says otherwise than the walk over all segments."""
    pairs = {
        "segment": (reached.segment, stored.segment),
        "next position": (reached.next_position, stored.next_position),
        "vector": (_without_zeros(reached.vector), _without_zeros(stored.vector)),
        "emission numbers": (dict(reached.numbers), dict(stored.numbers)),
        "chain": (reached.chain.hex(), stored.chain.hex()),
        "output chain": (reached.output_chain.hex(), stored.output_chain.hex()),
        "time": (reached.decided_at, stored.decided_at),
    }
    for name, (computed, said) in pairs.items():
        if computed != said:
            what = f"the head's {name} is {said}; the segments come to {computed}"
            return Fault("head", stored.segment, stored.next_position, what)
    return None


def find_misplaced(before: Head, row: SegmentRow) -> Fault | None:
    """What is wrong with a segment's numbers, as far as they can be told without its values."""
    expected = SegmentNumber(before.segment + 1)

    def fault(rule: str, what: str, record: RecordName | None = None) -> Fault:
        return Fault(rule, expected, before.next_position, what, record)

    if row.segment != expected:
        return fault("segments", f"segment {expected} is missing; the next one there is {row.segment}")
    if row.first_position != before.next_position:
        what = f"it begins at position {row.first_position}; the segment before ends in front of {before.next_position}"
        return fault("positions", what)
    if row.epoch < before.epoch:
        return fault("epochs", f"its epoch is {row.epoch}, behind epoch {before.epoch}")
    if row.decided_at < before.decided_at:
        return fault("times", f"it was decided at {row.decided_at}, behind {before.decided_at}")
    for producer, first in zip(row.order.producers, row.first_serials, strict=False):
        last = before.vector.get(producer, 0)
        if first != last + 1:
            what = f"producer {producer} goes on with serial {first} behind serial {last}"
            return fault("serials", what, (producer, first))
    return None


def _find_unlinked(before: Head, row: SegmentRow, content: Content) -> Fault | None:
    def fault(rule: str, what: str, record: RecordName | None = None) -> Fault:
        return Fault(rule, row.segment, row.first_position, what, record)

    if content.taken is None:
        return fault("records", content.problem, content.record)
    for (channel, target), (first, _) in content.lanes.items():
        last = before.numbers.get((channel, target), 0)
        if first != last + 1:
            return fault("emissions", f"channel {channel} (target {target}) goes on with {first} behind {last}")
    for rule, previous, hashed, recorded in (
        ("chain", before.chain, content.taken, row.chain),
        ("output chain", before.output_chain, content.owed, row.output_chain),
    ):
        computed = link(previous, hashed)
        if computed != recorded:
            return fault(rule, f"its {rule} is {recorded.hex()[:16]}…; its content comes to {computed.hex()[:16]}…")
    return None


def _behind(before: Head, row: SegmentRow, content: Content) -> Head:
    vector = {**before.vector, **{producer: last for producer, _, last in row.serial_ranges()}}
    numbers = {**before.numbers}
    for lane, (first, count) in content.lanes.items():
        numbers[lane] = EmissionNumber(first + count - 1)
    return replace(
        before,
        epoch=row.epoch,
        segment=row.segment,
        next_position=row.next_position,
        vector=vector,
        numbers=numbers,
        chain=row.chain,
        output_chain=row.output_chain,
        decided_at=row.decided_at,
    )


def _without_zeros(vector: Mapping[ProducerNumber, Serial]) -> dict[ProducerNumber, Serial]:
    return {producer: serial for producer, serial in vector.items() if serial}
