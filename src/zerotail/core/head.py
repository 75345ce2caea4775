"""The head of a stage and partition: how far its order has come, and the token that lets exactly one writer
go on.

A micro-batch is stored by one transaction that begins with a compare-and-set: the head must still be the
one from which the batch was computed, in epoch, segment number, chain and claim. The chain makes it exact: two
heads with the same number but another past never pass for each other. The claim lets the newest of two writers win:
each start counts it up.

1. vector(n) = vector(n - 1) + counts(n) (I2). 2. Positions are contiguous, hashes link, the epoch never
   falls (I3).
3. After an epoch is opened, no batch computed under an older one can join (I6): opening it writes the new
   epoch into every head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zerotail.core.chain import GENESIS, Chain, Run, input_content, link, output_content
from zerotail.core.emission import LaneKey, Owed
from zerotail.core.identity import (
    EmissionNumber,
    Epoch,
    Offset,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
)
from zerotail.core.poison import Decided

_FEW = 512
"""Below this, calling NumPy costs more than the work."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Where reading may go on: an offset in one log of one cluster. A hint, never a truth."""

    log: str
    """Cluster and topic identifier: an offset of another log means nothing."""
    offset: Offset


@dataclass(frozen=True, slots=True)
class Token:
    """What the compare-and-set compares."""

    epoch: Epoch
    segment: SegmentNumber
    chain: Chain
    claim: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """How far the order of one stage and partition has come."""

    epoch: Epoch
    segment: SegmentNumber
    next_position: Position
    vector: Mapping[ProducerNumber, Serial]
    numbers: Mapping[LaneKey, EmissionNumber]
    chain: Chain
    output_chain: Chain
    decided_at: int
    """Time of the last segment in microseconds: the handler's clock never falls below it."""
    hint: Hint | None = None
    claim: int = 0
    """How often a writer has started here: the newest one goes on, whoever was at work before is refused."""

    @property
    def token(self) -> Token:
        """What a writer that starts from here must find unchanged."""
        return Token(self.epoch, self.segment, self.chain, self.claim)

    def in_epoch(self, epoch: Epoch) -> Head:
        """The same head, handed over to a new epoch."""
        return replace(self, epoch=epoch)

    def claimed(self) -> Head:
        """The same head, claimed by one more writer."""
        return replace(self, claim=self.claim + 1)


@dataclass(frozen=True, slots=True)
class Segment:
    """What a stage applied to one partition in one micro-batch."""

    segment: SegmentNumber
    epoch: Epoch
    first_position: Position
    runs: tuple[Run, ...]
    digests: tuple[bytes, ...]
    decided_at: int
    version: str
    previous: Chain
    content: bytes
    chain: Chain
    output_chain: Chain
    decided: tuple[Decided, ...] = ()
    """What operators decided about records of this segment."""

    @property
    def records(self) -> list[tuple[ProducerNumber, Serial]]:
        """Its records in order, each by producer and serial."""
        return [(producer, Serial(first + step)) for producer, first, count in self.runs for step in range(count)]


def first_head(epoch: Epoch, producers: Sequence[ProducerNumber]) -> Head:
    """The head in front of the first segment."""
    vector = dict.fromkeys(producers, Serial(0))
    return Head(epoch, SegmentNumber(0), Position(0), vector, {}, GENESIS, GENESIS, 0)


def runs_of(producers: Sequence[ProducerNumber], serials: Sequence[Serial]) -> tuple[Run, ...]:
    """The order of accepted records as runs."""
    if len(serials) > _FEW:
        return _runs_of_many(producers, serials)
    runs: list[Run] = []
    for producer, serial in zip(producers, serials, strict=True):
        if runs and runs[-1][0] == producer and runs[-1][1] + runs[-1][2] == serial:
            runs[-1] = (producer, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((producer, serial, 1))
    return tuple(runs)


def _runs_of_many(producers: Sequence[ProducerNumber], serials: Sequence[Serial]) -> tuple[Run, ...]:
    import numpy as np  # whoever only looks at heads does not wait for it

    owners, numbers = np.asarray(producers, dtype=np.int64), np.asarray(serials, dtype=np.int64)
    starts = np.concatenate(([0], np.flatnonzero((np.diff(owners) != 0) | (np.diff(numbers) != 1)) + 1))
    counts = np.diff(np.append(starts, len(numbers)))
    columns = (owners[starts].tolist(), numbers[starts].tolist(), counts.tolist())
    return tuple((ProducerNumber(p), Serial(s), count) for p, s, count in zip(*columns, strict=True))


def advance(
    head: Head,
    *,
    producers: Sequence[ProducerNumber],
    serials: Sequence[Serial],
    digests: Sequence[bytes],
    decided_at: int,
    version: str,
    owed: Owed,
    hint: Hint | None,
    decided: Sequence[Decided] = (),
) -> tuple[Head, Segment]:
    """The head behind one more segment, and that segment."""
    number = SegmentNumber(head.segment + 1)
    runs = runs_of(producers, serials)
    content = input_content(head.epoch, number, head.next_position, decided_at, version, runs, digests, decided)
    chain = link(head.chain, content)
    output_chain = link(head.output_chain, output_content(owed))
    vector = dict(head.vector)
    for producer, first, count in runs:
        vector[producer] = Serial(first + count - 1)
    numbers = dict(head.numbers)
    for key, (number_first, values) in owed.items():
        numbers[key] = EmissionNumber(number_first + len(values) - 1)
    segment = Segment(
        number,
        head.epoch,
        head.next_position,
        runs,
        tuple(digests),
        decided_at,
        version,
        head.chain,
        content,
        chain,
        output_chain,
        tuple(decided),
    )
    position = Position(head.next_position + len(serials))
    moved = Head(head.epoch, number, position, vector, numbers, chain, output_chain, decided_at, hint, head.claim)
    return moved, segment
