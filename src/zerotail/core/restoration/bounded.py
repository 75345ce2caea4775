"""Idea two, plan 2b of the notes: the consumer restores the order in limited memory, and always finishes.

One **lead** cursor reads the log; what is early waits in the cache. When the cache would pass its limit, the
producer that fills it most is evicted: its records are forgotten, and from then on a **lag** cursor of its
own reads them, from where the oldest forgotten one lies. A lag cursor moves only when its producer's record
is next, and nothing else is taken from it. So no producer ever waits for room that another one takes, which
is what made a single cursor with a small cache rewind without end.

Where there is a place to **spill** to, an evicted producer's records wait there instead, those that come later as well,
and are taken back when they are next: the log is read once, whatever its disorder.

1. The cache never holds more messages or bytes than the limit (I15). Besides it, each cursor holds the batch
   that it read last, as the log gave it, and each evicted producer what was taken back last.
2. A producer is evicted once at most. So there are at most producers + 1 cursors, each reads the log once at
   most (I16), and only the lead does if the disorder fits into the limit or is spilled.
3. A record that the log lacks is refused by name when the cursor that has to bring it is at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from zerotail.core.identity import Offset, ProducerNumber
from zerotail.core.merge import Merge
from zerotail.core.order import Numbers, Order
from zerotail.core.restoration.arrivals import Admitted, admit
from zerotail.core.restoration.batch import Batch, Log
from zerotail.core.restoration.intake import (
    Intake,
    pass_in_order,
    plan_intake,
    release,
    take_in,
    worth_passing,
)
from zerotail.core.restoration.statistics import Restored, Tally
from zerotail.errors import Misused

_STEPS_PER_LIMIT = 8
"""Near the limit, rows are taken in by this part of it: smaller steps use it better, and cost more."""


@dataclass(frozen=True, slots=True)
class CacheLimit:
    """The most that a bounded restoration may keep for later."""

    messages: int
    bytes: int

    def __post_init__(self) -> None:
        if self.messages < 0 or self.bytes < 0:
            raise Misused(f"a cache cannot be limited to {self.messages} messages and {self.bytes} bytes")

    def holds(self, intake: Intake) -> bool:
        """Whether a plan stays within the limit."""
        return intake.foresight.peak_cache_messages <= self.messages and intake.cache_bytes <= self.bytes

    def step(self, batch: Batch) -> int:
        """How many rows of a batch to take in at once when all of them are too many."""
        row_bytes = max(1, int(batch.payload.nbytes) // len(batch))
        return max(1, min(self.messages, self.bytes // row_bytes) // _STEPS_PER_LIMIT)


class Spill(Protocol):
    """A place outside of memory for the records of evicted producers."""

    def put(self, producer: ProducerNumber, records: pa.RecordBatch) -> None:
        """Keep the next records of a producer."""
        ...

    def take(self, producer: ProducerNumber) -> pa.RecordBatch | None:
        """The oldest that were put and not taken yet, as many as were put at once; None if there are none."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Lag:
    """The cursor of an evicted producer."""

    batches: Iterator[Batch]
    counted_to: int
    """The lead has counted the producer's repeats before this offset."""


def bounded(order: Order, log: Log, limit: CacheLimit, spill: Spill | None = None) -> Restored:
    """The records of the order, in order, with no more than the limit kept in memory; refused if one is missing.

    `log` is any partition that can be opened at an offset:

        restored = bounded(order, log, CacheLimit(messages=10_000, bytes=64_000_000))
        for batch in restored:
            apply(batch)
        print(restored.statistics)
    """
    tally = Tally()
    tally.count(partition_records=log.records)
    return Restored(_Bounded(order, log, limit, spill, tally).run(), tally)


class _Bounded:
    def __init__(self, order: Order, log: Log, limit: CacheLimit, spill: Spill | None, tally: Tally) -> None:
        self._merge = Merge(order)
        self._log = log
        self._limit = limit
        self._tally = tally
        self._lead: Iterator[Batch] | None = None
        self._rest: Batch | None = None
        """What the lead has read and the merge has not taken in; never empty."""
        self._step: int | None = None
        """How many rows of it to take in at once, None for all."""
        self._lags: dict[ProducerNumber, _Lag] = {}
        self._spill = spill
        self._spilled: dict[ProducerNumber, int] = {}
        """Producers whose records are spilled, each with the first serial behind what was put there."""
        self._waiting: Counter[ProducerNumber] = Counter()
        """How many of each are there."""

    @property
    def _aside(self) -> Collection[ProducerNumber]:
        """The producers that have been evicted."""
        return self._lags if self._spill is None else self._spilled

    def run(self) -> Iterator[pa.RecordBatch]:
        """Read on with the cursor that has to bring the next record, until there is none."""
        while (blocked := self._merge.blocked_on()) is not None:
            producer, _ = blocked
            if producer in self._lags:
                yield from self._advance_lag(producer)
            elif (records := self._take_back(producer)) is not None:
                yield from self._release_spilled(producer, records)
            else:
                yield from self._advance_lead()

    def _advance_lead(self) -> Iterator[pa.RecordBatch]:
        """Take in the next rows of the lead cursor."""
        rest = self._poll_lead() if self._rest is None else self._rest
        if not len(rest):
            return
        passing = self._count_passing(rest)
        intake = None if worth_passing(passing, rest) else self._plan_within_limit(rest, passing)
        if intake is not None:
            taken = len(intake.batch)
            self._put_aside(intake.batch)
            yield from take_in(self._merge, intake, self._tally)
        else:
            taken = passing
            yield from pass_in_order(self._merge, rest.slice(0, passing), self._tally, self._aside)
        self._rest = rest.slice(taken) if taken < len(rest) else None

    def _count_passing(self, rest: Batch) -> int:
        """How many of the first rows are next. One whose twin waits in the spill is not: the log repeats it."""
        passing = self._merge.count_in_order(rest.producers, rest.serials)
        waiting = [producer for producer, count in self._waiting.items() if count]
        twins = np.isin(rest.producers[:passing], waiting) if waiting else np.zeros(0, bool)
        return int(twins.argmax()) if twins.any() else passing

    def _plan_within_limit(self, rest: Batch, passing: int) -> Intake | None:
        """The first rows of the rest: all, or a step. If they do not fit, producers are evicted until they
        do.

        None if a whole step can pass instead; passing less at a time would crawl along a full cache.
        """
        while True:
            intake = plan_intake(self._merge, rest.slice(0, self._step), self._aside)
            if self._limit.holds(intake):
                return intake
            if self._step is None:
                self._step = self._limit.step(rest)
            elif passing >= self._step:
                return None
            else:
                self._evict(intake)

    def _evict(self, intake: Intake) -> None:
        """Spill the records of the producer that fills the cache most, or forget them and give it a lag cursor."""
        merge, rows, pieces = self._merge, intake.arrivals.rows, intake.pieces
        too_many = intake.foresight.peak_cache_messages > self._limit.messages

        def fill(producer: ProducerNumber) -> int:
            if too_many:
                return merge.held_messages(producer) + len(rows.get(producer, ()))
            return merge.held_bytes(producer) + (pieces[producer].nbytes if producer in pieces else 0)

        fullest = max((p for p in merge.order.producers if p not in self._aside), key=fill)
        if self._spill is not None:
            self._spilled[fullest] = merge.expected(fullest)
            for piece in merge.take_out(fullest) if merge.held_messages(fullest) else ():
                self._put_into(self._spill, fullest, piece)
            return
        offsets = intake.batch.offsets
        if merge.held_messages(fullest):
            oldest = merge.drop(fullest)
        else:
            oldest = Offset(int(offsets[rows[fullest][0]]))
        self._lags[fullest] = _Lag(self._log.open(oldest), counted_to=int(offsets[0]))

    def _advance_lag(self, producer: ProducerNumber) -> Iterator[pa.RecordBatch]:
        """Take in what the next batch of a lag cursor has of its producer."""
        merge, lag = self._merge, self._lags[producer]
        batch = self._poll(lag.batches)
        mine, admitted = self._admit_own(batch, producer, merge.expected(producer))
        uncounted = batch.offsets[mine] >= lag.counted_to
        self._tally.count(repeats=int(uncounted[admitted.repeats].sum()), gaps=int(uncounted[admitted.gaps].sum()))
        if len(admitted.news):
            merge.put(producer, batch.rows(mine[admitted.news]))
            yield from release(merge, self._tally, self._aside)

    def _put_aside(self, batch: Batch) -> None:
        """Spill what a batch of the lead cursor has of the producers that are spilled."""
        if self._spill is None:
            return
        for producer, reached in self._spilled.items():
            # Records that were next when they were read have passed, and were not put here.
            expected = max(reached, self._merge.expected(producer))
            mine, admitted = self._admit_own(batch, producer, expected)
            self._tally.count(repeats=len(admitted.repeats), gaps=len(admitted.gaps))
            self._spilled[producer] = expected + len(admitted.news)
            if len(admitted.news):
                self._put_into(self._spill, producer, batch.rows(mine[admitted.news]))

    def _admit_own(self, batch: Batch, producer: ProducerNumber, expected: int) -> tuple[Numbers, Admitted]:
        """The rows of a producer in a batch, up to the order's end, and what they are behind an expected serial."""
        mine = np.flatnonzero(batch.producers == producer)
        mine = mine[batch.serials[mine] <= self._merge.order.vector_after[producer]]
        return mine, admit(batch.serials[mine], expected)

    def _put_into(self, spill: Spill, producer: ProducerNumber, records: pa.RecordBatch) -> None:
        spill.put(producer, records)
        self._waiting[producer] += records.num_rows
        self._tally.count(spilled=records.num_rows)

    def _take_back(self, producer: ProducerNumber) -> pa.RecordBatch | None:
        return self._spill.take(producer) if self._spill is not None and self._waiting[producer] else None

    def _release_spilled(self, producer: ProducerNumber, records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take in records that were spilled; they have waited, if not in the cache."""
        self._waiting[producer] -= records.num_rows
        self._merge.put(producer, records)
        self._tally.count(first_hits=-records.num_rows, cache_hits=records.num_rows)
        yield from release(self._merge, self._tally, self._aside)

    def _poll_lead(self) -> Batch:
        if self._lead is None:
            self._lead = self._log.open(None)
        batch = self._poll(self._lead)
        self._tally.count(foreign=batch.foreign)
        self._step = None
        return batch

    def _poll(self, cursor: Iterator[Batch]) -> Batch:
        batch = next(cursor, None)
        if batch is None:
            raise self._merge.refusal()
        self._tally.poll(batch)
        return batch
