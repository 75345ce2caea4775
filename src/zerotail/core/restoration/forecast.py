"""What a restoration would cost, told from the journal and a few looks into the log.

A **look** is the last serial of each producer around some place of the log. Since producers write in serial order, a
look tells what had arrived there; the journal tells how much of that could have left; the difference waited in the
cache. So a few dozen looks give the shape of the disorder without reading the log: its peak, and, played through look
by look, which producers a bounded cache would have to evict and how much is read again for them.

The answer is an estimate: between two looks the log is taken for even. Afterwards the measured figures stand beside
it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.core.order import Order


class RestoreStrategy(StrEnum):
    """The ways back to the journal's order."""

    SKIP = "skip"
    """Nobody puts the order right: what is journaled is passed over."""
    ORDERED_REFILL = "ordered-refill"
    """The records are written in order, from the database."""
    UNBOUNDED = "unbounded"
    """The consumer puts them in order and keeps whatever is early."""
    BOUNDED = "bounded"
    """The same with limited memory."""
    SORT = "sort"
    """Spark computes each record's position and sorts."""
    MIRROR_TAIL = "mirror-tail"
    """What a mirror brought is kept; the tail that it lacks is written and put in order."""
    FOLLOWER = "follower"
    """The log is in order already; only its end is missing."""
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Look:
    """What lies around one place of the log."""

    records_before: int
    """How many records of the log lie before the place."""
    last: Mapping[ProducerNumber, Serial]
    """The last serial of each producer up to the place."""


@dataclass(frozen=True, slots=True)
class Disorder:
    """How far the log is from the journal's order."""

    peak_cache_messages: int
    """About the most records that wait at one time."""
    records: int
    """In the log."""


@dataclass(frozen=True, slots=True)
class BoundedReading:
    """What a cache of limited size means."""

    reads: float
    """How often the log is read, as a multiple of its length."""
    evicted: int
    """Producers that get a cursor of their own."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one strategy would take, or why it cannot be used."""

    strategy: RestoreStrategy
    usable: bool
    reason: str
    """What it would do; or why it cannot."""
    seconds: float | None = None
    memory_bytes: int | None = None
    reads: float | None = None
    """Of the log, as a multiple of its length."""
    writes: int | None = None
    """Records that are written."""
    restores_order: bool = True


def plan_looks(
    order: Order, seen: Mapping[ProducerNumber, Sequence[tuple[int, Serial]]], records: int, count: int
) -> list[Look]:
    """Looks at even distances, from what was seen of each producer: (records before, serial), in the order of the log.

    Between two places where a producer was seen it is taken for even.
    """
    places = [records * step // count for step in range(1, count + 1)]
    last: dict[ProducerNumber, list[int]] = {}
    for producer in order.producers:
        points = sorted(seen.get(producer, ()))
        wheres = [0, *(where for where, _ in points)]
        serials = [order.vector_before[producer], *(serial for _, serial in points)]
        last[producer] = np.interp(places, wheres, np.maximum.accumulate(serials)).astype(int).tolist()
    return [
        Look(place, {producer: Serial(serials[index]) for producer, serials in last.items()})
        for index, place in enumerate(places)
    ]


def waiting_at(order: Order, last: Mapping[ProducerNumber, Serial], aside: Collection[ProducerNumber] = ()) -> int:
    """How many records wait in the cache when each producer's records up to these serials have been read.

    >>> from zerotail.core.order import Runs
    >>> a, b = ProducerNumber(1), ProducerNumber(2)
    >>> waiting_at(Order(Runs.of([(a, 2), (b, 2)])), {a: Serial(1), b: Serial(2)})
    2
    """
    complete = _complete_to(order, last, aside)
    return sum(_held(order, producer, last, complete) for producer in order.producers if producer not in aside)


def measure_disorder(order: Order, looks: Sequence[Look], records: int) -> Disorder:
    """The most that waits at any look."""
    return Disorder(max((waiting_at(order, look.last) for look in looks), default=0), records)


def foresee_bounded(order: Order, looks: Sequence[Look], records: int, cache_messages: int) -> BoundedReading:
    """Which producers would be evicted, and how much of the log is read for them again."""
    aside: list[ProducerNumber] = []
    again = 0
    for look in looks:
        while waiting_at(order, look.last, aside) > cache_messages:
            complete = _complete_to(order, look.last, aside)
            held = {p: _held(order, p, look.last, complete) for p in order.producers if p not in aside}
            fullest = max(held, key=lambda producer: (held[producer], -producer))
            oldest = look.last.get(fullest, order.vector_before[fullest]) - held[fullest]
            again += records - _records_before(looks, fullest, oldest)
            aside.append(fullest)
    return BoundedReading(1 + again / records if records else 0.0, len(aside))


def choose_best(forecasts: Sequence[Forecast], memory_bytes: int) -> Forecast | None:
    """The fastest that restores the order within the memory; the first of those that are equally fast."""
    fitting = [
        one
        for one in forecasts
        if one.usable and one.restores_order and one.seconds is not None and (one.memory_bytes or 0) <= memory_bytes
    ]
    return min(fitting, key=lambda one: one.seconds or 0.0, default=None)


def _complete_to(order: Order, last: Mapping[ProducerNumber, Serial], aside: Collection[ProducerNumber]) -> Position:
    """How far the order could have left."""
    places = []
    for producer in order.producers:
        if producer not in aside:
            reached = max(last.get(producer, 0), order.vector_before[producer])
            place = order.find_position(producer, reached + 1)
            places.append(order.next_position if place is None else place)
    return min(places, default=order.next_position)


def _held(order: Order, producer: ProducerNumber, last: Mapping[ProducerNumber, Serial], complete: Position) -> int:
    """How many records of a producer have arrived and stand at or behind `complete`."""
    before = order.vector_before[producer]
    arrived = min(max(last.get(producer, 0), before), order.vector_after[producer]) - before
    index = order.producers.index(producer)
    gone = int(order.counts_between(order.first_position, complete)[index]) if complete > order.first_position else 0
    return max(0, arrived - gone)


def _records_before(looks: Sequence[Look], producer: ProducerNumber, serial: int) -> int:
    """About how many records lie before one of a producer."""
    before, known = 0, 0
    for look in looks:
        reached = look.last.get(producer, known)
        if reached >= serial:
            share = (serial - known) / (reached - known) if reached > known else 0.0
            return before + int(share * (look.records_before - before))
        before, known = look.records_before, reached
    return before
