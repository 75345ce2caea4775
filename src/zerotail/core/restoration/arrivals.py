"""Which rows of a batch are news, and what they will set free: arithmetic only, nothing is moved yet.

A producer writes in serial order, and after a fault again from an earlier serial on. So of each producer
exactly the next expected serial is news; a lower one is a repeat, and a higher one stands behind a gap that
the producer will close by sending again: it is dropped now and read then. A stage admits records by the same
rule.

What a batch sets free is known before a row is copied. Say how far the order will be complete; write beside
each position up to there when its record arrived; a record whose arrival is later than all arrivals before it
in the order was next when it came: a first hit. The cache is fullest just before a first hit, or at the
batch's end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from zerotail.core.identity import ProducerNumber
from zerotail.core.merge import Merge
from zerotail.core.order import Numbers
from zerotail.core.restoration.batch import Batch

Rows = npt.NDArray[np.intp]


_NO_ROWS: Rows = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """One producer's rows, sorted by the rule."""

    news: Rows
    repeats: Rows
    gaps: Rows


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The news of a batch as rows by producer, in serial order; and how many rows are none."""

    rows: dict[ProducerNumber, Rows]
    repeats: int
    gaps: int
    beyond: Rows
    """Rows behind the order's end, ascending."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """What taking in a batch will do."""

    first_hits: int
    cache_hits: int
    peak_cache_messages: int


def split(indexes: npt.NDArray[np.int16], kinds: int) -> Iterator[tuple[int, Rows]]:
    """The rows of each index from 0 on that occurs, in the order of the batch; index -1 is left out."""
    by_index = np.argsort(indexes, kind="stable")
    ends = np.searchsorted(indexes, np.arange(-1, kinds), side="right", sorter=by_index).tolist()
    for index in range(kinds):
        if ends[index] < ends[index + 1]:
            yield index, by_index[ends[index] : ends[index + 1]]


def admit(serials: Numbers, expected: int) -> Admitted:
    """Sort one producer's serials, as they arrive, by the rule.

    >>> admitted = admit(np.array([4, 5, 5, 6, 9, 7]), expected=5)
    >>> admitted.news.tolist(), admitted.repeats.tolist(), admitted.gaps.tolist()
    ([1, 3, 5], [0, 2], [4])
    """
    breaks = (np.flatnonzero(np.diff(serials) != 1) + 1).tolist()
    if not breaks and len(serials) and serials[0] == expected:
        return Admitted(np.arange(len(serials)), _NO_ROWS, _NO_ROWS)
    news, repeats, gaps = [_NO_ROWS], [_NO_ROWS], [_NO_ROWS]
    for begin, end in pairwise([0, *breaks, len(serials)]):
        first = int(serials[begin]) if begin < end else expected
        rows = np.arange(begin, end)
        if first > expected:
            gaps.append(rows)
        else:
            known = expected - first
            repeats.append(rows[:known])
            news.append(rows[known:])
            expected = max(expected, first + len(rows))
    return Admitted(np.concatenate(news), np.concatenate(repeats), np.concatenate(gaps))


def sort_arrivals(batch: Batch, merge: Merge, aside: Collection[ProducerNumber] = ()) -> Arrivals:
    """The news of a batch for a merge. Producers aside are read elsewhere: only `beyond` is told of them."""
    order = merge.order
    indexes = order.indexes_of(batch.producers)
    rows: dict[ProducerNumber, Rows] = {}
    repeats = gaps = 0
    beyond = [np.flatnonzero(indexes < 0)]
    for index, all_mine in split(indexes, len(order.producers)):
        producer = order.producers[index]
        serials = batch.serials[all_mine]
        behind = serials > order.vector_after[producer]
        beyond.append(all_mine[behind])
        if producer not in aside:
            mine = all_mine[~behind]
            admitted = admit(serials[~behind], merge.expected(producer))
            repeats += len(admitted.repeats)
            gaps += len(admitted.gaps)
            if len(admitted.news):
                rows[producer] = mine[admitted.news]
    return Arrivals(rows, repeats, gaps, np.sort(np.concatenate(beyond)))


def foresee(merge: Merge, rows: dict[ProducerNumber, Rows], aside: Collection[ProducerNumber] = ()) -> Foresight:
    """What these arrivals, by producer, will set free.

    Records of the producers aside never are in the cache: they count as first hits when they leave.
    """
    order = merge.order
    cached = sum(merge.held_messages(producer) for producer in order.producers if producer not in aside)
    arrived = sum(map(len, rows.values()))
    end = merge.complete_to({producer: len(mine) for producer, mine in rows.items()})
    if end == merge.position:
        return Foresight(0, 0, cached + arrived)
    times = np.full(end - merge.position, -1, dtype=np.int64)  # -1: was at hand before
    from_cache = np.zeros(len(times), dtype=np.bool_)
    turns = _turns(rows)
    counts = order.counts_between(merge.position, end).tolist()
    for producer, count in zip(order.producers, counts, strict=True):
        if producer not in aside:
            next_serial = merge.next_serial(producer)
            places = order.positions_of(producer, next_serial, next_serial + count) - merge.position
            from_cache[places] = True
            fresh = places[merge.held_messages(producer) :]
            if len(fresh):
                times[fresh] = turns[rows[producer][: len(fresh)]]
    first_hits = np.flatnonzero(np.diff(np.maximum.accumulate(times), prepend=-1))
    gone = np.cumsum(from_cache)
    waiting = times[first_hits] - gone[first_hits] + 1  # arrived before a first hit, less what left before it
    from_aside = len(times) - int(gone[-1])
    return Foresight(
        first_hits=len(first_hits) + from_aside,
        cache_hits=len(times) - len(first_hits) - from_aside,
        peak_cache_messages=cached + max(int(waiting.max(initial=0)), arrived - int(gone[-1])),
    )


def _turns(rows: dict[ProducerNumber, Rows]) -> Numbers:
    """For each row that is news, how many news arrived before it."""
    news = np.zeros(1 + max((int(mine[-1]) for mine in rows.values()), default=-1), dtype=np.bool_)
    for mine in rows.values():
        news[mine] = True
    return np.cumsum(news) - 1
