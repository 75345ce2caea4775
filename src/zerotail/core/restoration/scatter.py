"""Restoration for logs in which even one producer's records may stand in any order.

Each record's position is computed when it is read, from the runs by one binary search. Positions are cut into
windows of equal size; a record is kept in the window that its position falls into, with a note of its place
there. When the first window that has not left is full, its rows are gathered in order and leave together.
Nothing is assumed about the order of arrival, so nothing is dropped as standing behind a gap; the price is a
search per record, and that nothing leaves before its window is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zerotail.core.identity import Position
from zerotail.core.merge import ROWS_PER_BATCH, missing_record
from zerotail.core.order import BEYOND, Numbers, Order
from zerotail.core.restoration.batch import Batch
from zerotail.core.restoration.statistics import Restored, Tally
from zerotail.errors import Misused

_MOST_BYTES = 2**31 - 1


def scatter(order: Order, batches: Iterable[Batch], *, window: int = ROWS_PER_BATCH) -> Restored:
    """The records of the order, in order, a window at a time; a missing record is refused by name."""
    if window < 1:
        raise Misused(f"a window holds 1 record at least, not {window}")
    tally = Tally()
    return Restored(_Scatter(order, window, tally).run(iter(batches)), tally)


class _Window:
    """Consecutive positions, and the rows that stand there."""

    def __init__(self, first_position: int, next_position: int) -> None:
        self.first_position = first_position
        self.rows = np.full(next_position - first_position, -1, dtype=np.int64)
        """For each position its row, counted through all parts; -1 if it is missing."""
        self.times = np.zeros(len(self.rows), dtype=np.int64)
        """For each position when its record arrived: how many news had arrived before."""
        self.parts: list[pa.RecordBatch] = []
        self.records = 0
        self.held_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether every position has its record."""
        return self.records == len(self.rows)

    def first_missing(self) -> Position:
        """The first position that has no record, in a window that is not full."""
        return Position(self.first_position + int((self.rows < 0).argmax()))

    def vacant(self, positions: Numbers) -> npt.NDArray[np.bool_]:
        """Which of these positions have no record yet; of those that occur twice, the first."""
        places = positions - self.first_position
        vacant = self.rows[places] < 0
        claims = np.arange(len(places))
        self.times[places[::-1]] = np.where(vacant, claims, self.times[places])[::-1]
        vacant &= self.times[places] == claims
        return vacant

    def put(self, positions: Numbers, times: Numbers, part: pa.RecordBatch) -> None:
        """Keep rows at their positions, none of which has one yet."""
        places = positions - self.first_position
        self.rows[places] = np.arange(self.records, self.records + len(places))
        self.times[places] = times
        self.parts.append(part)
        self.records += len(places)
        self.held_bytes += part.nbytes

    def gather(self) -> pa.RecordBatch:
        """All rows, in order."""
        if self.held_bytes > _MOST_BYTES:
            held = f"a window of {self.records} records holds {self.held_bytes} bytes"
            raise Misused(
                f"{held}; {_MOST_BYTES} is the most",
                why="Arrow counts the bytes of a column with 32 bits.",
                tries=["scatter(…, window=…) with fewer records, or the unbounded restoration"],
            )
        source = self.parts[0] if len(self.parts) == 1 else pa.concat_batches(self.parts)
        return source.take(pa.array(self.rows))


class _Scatter:
    def __init__(self, order: Order, window: int, tally: Tally) -> None:
        self._order = order
        self._size = window
        self._tally = tally
        self._windows: dict[int, _Window] = {}
        self._first = 0
        """The first window that has not left, counted from the order's beginning."""
        self._arrived = 0
        self._latest = -1
        """The latest arrival among the records that have left."""

    def run(self, batches: Iterator[Batch]) -> Iterator[pa.RecordBatch]:
        """Read until the last window has left."""
        while self._first * self._size < len(self._order):
            batch = next(batches, None)
            if batch is None:
                raise missing_record(self._order, self._window(self._first).first_missing())
            self._tally.poll(batch)
            self._tally.count(partition_records=batch.records_read, foreign=batch.foreign)
            if len(batch):
                self._take_in(batch)
            while (window := self._windows.get(self._first)) is not None and window.is_full:
                self._count(self._windows.pop(self._first))
                self._first += 1
                yield window.gather()

    def _window(self, number: int) -> _Window:
        if number not in self._windows:
            first = self._order.first_position + number * self._size
            self._windows[number] = _Window(first, min(first + self._size, self._order.next_position))
        return self._windows[number]

    def _take_in(self, batch: Batch) -> None:
        positions = self._order.positions(batch.producers, batch.serials)
        beyond = np.flatnonzero(positions == BEYOND)
        if len(beyond):
            self._tally.leave(int(batch.offsets[beyond[0]]))
        self._tally.read_to(int(batch.offsets[-1]) + 1)
        numbers = (positions - self._order.first_position) // self._size
        wanted = (numbers >= self._first) & (positions != BEYOND)
        kept = np.zeros(len(batch), dtype=np.bool_)
        rows_by_window: dict[int, npt.NDArray[np.intp]] = {}
        for ahead in np.flatnonzero(np.bincount(numbers[wanted] - self._first)).tolist():
            number = self._first + ahead
            rows = np.flatnonzero(wanted & (numbers == number))
            news = rows[self._window(number).vacant(positions[rows])]
            if len(news):
                kept[news] = True
                rows_by_window[number] = news
        times = np.cumsum(kept) - 1 + self._arrived
        for number, rows in rows_by_window.items():
            self._window(number).put(positions[rows], times[rows], batch.rows(rows))
        arrived = int(kept.sum())
        self._arrived += arrived
        self._tally.count(repeats=len(batch) - len(beyond) - arrived, beyond=len(beyond))
        self._tally.reach(0, sum(window.held_bytes for window in self._windows.values()))

    def _count(self, window: _Window) -> None:
        """Count the hits of a window that leaves: a record that arrived later than all before it was next."""
        latest = np.maximum.accumulate(np.append(self._latest, window.times))
        first_hits = np.flatnonzero(np.diff(latest))
        self._latest = int(latest[-1])
        gone = window.first_position - self._order.first_position + first_hits
        waiting = window.times[first_hits] - gone  # arrived before a first hit, less what left before it
        self._tally.reach(int(waiting.max(initial=0)), 0)
        self._tally.count(first_hits=len(first_hits), cache_hits=len(window.times) - len(first_hits))
