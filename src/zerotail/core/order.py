"""The order in which a stage took the records of its producers, and where each record stands in it.

The journal keeps an order as **runs**: producer 1 twice, producer 2 twice, producer 1 once. Serials are
dense, so the runs alone say where any record stands: count the producer's records run by run until the serial
is reached.

The index turns that walk into one binary search. Sort the runs by producer, keeping their order, and lay them
end to end: every record gets a **rank**, its place if each producer's records stood together. A record's rank
is simple arithmetic (where its producer begins, plus its serial), the ranks at which runs begin rise from run
to run, and inside one run position minus rank is a constant. So: find the run by rank, add the run's
constant.

1. `position` maps the order's records one to one onto first_position, …, next_position - 1; `record_at` is
   the inverse.
2. A record at or before the vector that the order begins with has position BEFORE, one behind its end has
   BEYOND; both compare with positions as their names say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.errors import Broken, Misused, Refused

Numbers = npt.NDArray[np.int64]
Vector = Mapping[ProducerNumber, Serial]
"""The last serial per producer; a producer that is not in it has none yet."""

BEFORE = Position(-1)
"""The position of a record that the order begins behind: a repeat."""
BEYOND = Position(2**63 - 1)
"""The position of a record that the order does not reach."""


_MOST_PRODUCERS = 2**15 - 1  # indexes of 16 bits sort in linear time


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive positions filled by consecutive serials of one producer."""

    producer: ProducerNumber
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Many runs, kept as two arrays; neighbours always differ in their producer.

    >>> Runs.of([(1, 2), (2, 1), (2, 1), (1, 1)])
    Runs(1×2 2×2 1×1)
    """

    producers: Numbers
    counts: Numbers

    @classmethod
    def of(cls, runs: Iterable[tuple[int, int]]) -> Runs:
        """The runs of (producer, count) pairs; neighbours of one producer are joined, empty runs vanish."""
        pairs = np.array([*runs], dtype=np.int64).reshape(-1, 2)
        return cls.joined(pairs[:, 0], pairs[:, 1])

    @classmethod
    def of_records(cls, producers: npt.ArrayLike) -> Runs:
        """The runs of an order that is given record by record."""
        each = np.asarray(producers, dtype=np.int64)
        ends = np.append(np.flatnonzero(each[1:] != each[:-1]), len(each) - 1) if len(each) else _NONE
        return cls(each[ends], np.diff(ends, prepend=-1))

    @classmethod
    def joined(cls, producers: Numbers, counts: Numbers) -> Runs:
        """Runs from two arrays that may hold empty runs, and neighbours of one producer."""
        if (counts < 0).any():
            raise Broken(f"a run has {counts.min()} records; no run is shorter than none")
        producers, counts = producers[counts > 0], counts[counts > 0]
        first = np.flatnonzero(np.diff(producers, prepend=producers[:1] - 1))
        return cls(producers[first], np.add.reduceat(counts, first) if len(first) else _NONE)

    @property
    def records(self) -> int:
        """How many records they order."""
        return int(self.counts.sum())

    def per_record(self) -> Numbers:
        """The producer of each record, in order."""
        return np.repeat(self.producers, self.counts)

    def per_producer(self) -> dict[ProducerNumber, int]:
        """How many records each producer has in them, by ascending number."""
        numbers, dense = np.unique(self.producers, return_inverse=True)
        totals = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(totals, dense, self.counts)
        return {ProducerNumber(n): count for n, count in zip(numbers.tolist(), totals.tolist(), strict=True)}

    def __len__(self) -> int:
        return len(self.producers)

    def __iter__(self) -> Iterator[Run]:
        return map(Run, map(ProducerNumber, self.producers.tolist()), self.counts.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        return np.array_equal(self.producers, other.producers) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # equal by content, and the content is arrays

    def __repr__(self) -> str:
        shown = [f"{run.producer}×{run.count}" for run in self][:20]
        return f"Runs({' '.join(shown)}{' …' if len(self) > len(shown) else ''})"


_NONE: Numbers = np.zeros(0, dtype=np.int64)


def concatenate(parts: Iterable[Runs]) -> Runs:
    """The parts one after another as one order; a run that a border cuts in two is one run again."""
    several = [*parts]
    return Runs.joined(
        np.concatenate([_NONE, *(part.producers for part in several)]),
        np.concatenate([_NONE, *(part.counts for part in several)]),
    )


class Order:
    """Where each record of an order stands. It may begin in the middle of history, and never changes.

    >>> order = Order(Runs.of([(1, 2), (2, 2), (1, 1)]))
    >>> order.position(ProducerNumber(2), Serial(1)), order.record_at(Position(4))
    (2, (1, 3))

    `before` is the vector that the order begins behind, `first_position` the position it begins at. Per run
    it keeps about 50 bytes, whatever the number of records.
    """

    def __init__(self, runs: Runs, *, before: Vector | None = None, first_position: int = 0) -> None:
        given = before or {}
        self.runs = runs
        self.first_position = Position(first_position)
        self.next_position = Position(first_position + runs.records)
        numbers = np.union1d(runs.producers, np.array([*given], dtype=np.int64))
        if len(numbers) > _MOST_PRODUCERS:
            raise Misused(f"an order holds {_MOST_PRODUCERS} producers at most, not {len(numbers)}")
        # A producer's index in `producers` serves wherever a small dense number is handier than its own.
        self.producers: tuple[ProducerNumber, ...] = tuple(map(ProducerNumber, numbers.tolist()))
        self._index_of = {producer: index for index, producer in enumerate(self.producers)}
        # Index -1 is a producer that the order does not know: no serial before, no record in it.
        self._numbers = np.append(numbers, -1)
        self._before = np.array([*(given.get(number, 0) for number in self.producers), 0], dtype=np.int64)
        self.indexes = np.searchsorted(numbers, runs.producers).astype(np.int16)
        self.starts = self.first_position + np.cumsum(runs.counts) - runs.counts
        by_producer = np.argsort(self.indexes, kind="stable")
        counts = runs.counts[by_producer]
        self._rank_starts = np.cumsum(counts) - counts
        self._rank_shifts = np.append(self.starts[by_producer] - self._rank_starts, 0)
        self._totals = np.zeros(len(numbers) + 1, dtype=np.int64)
        np.add.at(self._totals, self.indexes, runs.counts)
        self._bases = np.cumsum(self._totals) - self._totals
        self.first_serials = np.empty(len(runs), dtype=np.int64)
        owners = self.indexes[by_producer]
        self.first_serials[by_producer] = (self._before - self._bases)[owners] + self._rank_starts + 1
        for shared in (self.indexes, self.starts, self.first_serials):
            shared.setflags(write=False)

    @cached_property
    def vector_before(self) -> dict[ProducerNumber, Serial]:
        """The last serial per producer in front of the order."""
        return dict(zip(self.producers, map(Serial, self._before[:-1].tolist()), strict=True))

    @cached_property
    def vector_after(self) -> dict[ProducerNumber, Serial]:
        """The last serial per producer at the order's end."""
        return dict(zip(self.producers, map(Serial, (self._before + self._totals)[:-1].tolist()), strict=True))

    def __len__(self) -> int:
        return self.next_position - self.first_position

    def holds(self, producer: ProducerNumber, serial: int) -> bool:
        """Whether a record is in the order."""
        return self.vector_before.get(producer, 0) < serial <= self.vector_after.get(producer, 0)

    def find_position(self, producer: ProducerNumber, serial: int) -> Position | None:
        """Where one record stands, None if the order does not hold it."""
        if not self.holds(producer, serial):
            return None
        index = self._index_of[producer]
        rank = int(self._bases[index]) + serial - self.vector_before[producer] - 1
        run = int(np.searchsorted(self._rank_starts, rank, side="right")) - 1
        return Position(rank + int(self._rank_shifts[run]))

    def position(self, producer: ProducerNumber, serial: int) -> Position:
        """Where one record stands; refused if the order does not hold it."""
        found = self.find_position(producer, serial)
        if found is None:
            raise self._lacks(producer, serial)
        return found

    def _lacks(self, producer: ProducerNumber, serial: int) -> Refused:
        first, last = self.vector_before.get(producer, 0) + 1, self.vector_after.get(producer, 0)
        holds = f"serials {first} to {last}" if first <= last else "no records"
        return Refused(f"the order has no record (producer {producer}, serial {serial}); it has {holds} of it")

    def record_at(self, position: Position) -> tuple[ProducerNumber, Serial]:
        """The record that stands at one position."""
        if not self.first_position <= position < self.next_position:
            raise Refused(f"the order has no position {position}; it has {self._extent()}")
        run = int(np.searchsorted(self.starts, position, side="right")) - 1
        serial = int(self.first_serials[run]) + position - int(self.starts[run])
        return ProducerNumber(int(self.runs.producers[run])), Serial(serial)

    def _extent(self) -> str:
        return f"{self.first_position} to {self.next_position - 1}" if len(self) else "none at all"

    def indexes_of(self, producers: Numbers) -> npt.NDArray[np.int16]:
        """The index of each record's producer in `producers`, -1 where the order does not know it."""
        found = np.searchsorted(self._numbers[:-1], producers)
        found[self._numbers[found] != producers] = -1
        return found.astype(np.int16)

    def positions(self, producers: Numbers, serials: Numbers) -> Numbers:
        """Where each of many records stands; BEFORE or BEYOND for those that the order does not hold."""
        indexes = self.indexes_of(producers)
        local = serials - self._before[indexes] - 1
        ranks = local + self._bases[indexes]
        runs = np.searchsorted(self._rank_starts, ranks, side="right") - 1
        found: Numbers = ranks + self._rank_shifts[runs]
        found[local >= self._totals[indexes]] = BEYOND
        found[local < 0] = BEFORE
        return found

    def positions_of(self, producer: ProducerNumber, first_serial: int, next_serial: int) -> Numbers:
        """Where consecutive records of one producer stand; all of them must be in the order."""
        if first_serial == next_serial:
            return _NONE
        for serial in (first_serial, next_serial - 1):
            if not self.holds(producer, serial):
                raise self._lacks(producer, serial)
        index = self._index_of[producer]
        shift = int(self._bases[index] - self._before[index]) - 1
        first, last = first_serial + shift, next_serial + shift - 1
        begin, end = np.searchsorted(self._rank_starts, (first, last), side="right")
        borders = self._rank_starts[begin:end]
        lengths = np.diff(borders, prepend=first, append=last + 1)
        found: Numbers = np.arange(first, last + 1) + np.repeat(self._rank_shifts[begin - 1 : end], lengths)
        return found

    def records_at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """The producers and serials at many positions; all of them must be in the order."""
        if not len(positions):
            return _NONE, _NONE
        self.record_at(Position(int(positions.min())))
        self.record_at(Position(int(positions.max())))
        runs = np.searchsorted(self.starts, positions, side="right") - 1
        return self.runs.producers[runs], self.first_serials[runs] + positions - self.starts[runs]

    def records_between(self, first_position: int, next_position: int) -> tuple[Numbers, Numbers]:
        """The producers and serials at consecutive positions; all of them must be in the order."""
        if first_position == next_position:
            return _NONE, _NONE
        begin, end, lengths = self.runs_between(first_position, next_position)
        offsets = np.repeat(self.first_serials[begin:end] - self.starts[begin:end], lengths)
        producers = np.repeat(self.runs.producers[begin:end], lengths)
        return producers, offsets + np.arange(first_position, next_position)

    def runs_between(self, first_position: int, next_position: int) -> tuple[int, int, Numbers]:
        """Which runs, begin to end, lie at these positions, one at least, and how many records of each."""
        self.record_at(Position(first_position))
        self.record_at(Position(next_position - 1))
        begin = int(np.searchsorted(self.starts, first_position, side="right")) - 1
        end = int(np.searchsorted(self.starts, next_position, side="left"))
        lengths = np.diff(self.starts[begin + 1 : end], prepend=first_position, append=next_position)
        return begin, end, lengths

    def counts_between(self, first_position: int, next_position: int) -> Numbers:
        """How many records each producer, by its index, has at these positions, one at least."""
        begin, end, lengths = self.runs_between(first_position, next_position)
        counts = np.zeros(len(self.producers), dtype=np.int64)
        np.add.at(counts, self.indexes[begin:end], lengths)
        return counts
