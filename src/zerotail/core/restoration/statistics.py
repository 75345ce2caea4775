"""What a restoration did, in the figures of the user's tables.

A record that is read exactly when it is next is a **first hit**. One that is read early waits in the cache,
and is a **cache hit** when its turn comes. Both are counted record by record, so they do not depend on how
the log was cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from zerotail.core.identity import Offset
from zerotail.core.restoration.batch import Batch


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one restoration, so far."""

    first_hits: int = 0
    cache_hits: int = 0
    peak_cache_messages: int = 0
    """The most records that waited at one time."""
    peak_cache_bytes: int = 0
    """The most bytes of Arrow buffers that were held for waiting records, and for sorting a batch."""
    spilled: int = 0
    """Records that waited outside of memory; each is a cache hit when it leaves."""
    polls: int = 0
    """Batches read, by all cursors."""
    records_read: int = 0
    """Records read, by all cursors, with everything that was dropped."""
    partition_records: int = 0
    """Records in the partition; for a restoration that reads once, those it read."""
    skipped: int = 0
    """Records passed over because the vector covers them."""
    repeats: int = 0
    """Records whose serial had been read before."""
    gaps: int = 0
    """Records that came before an earlier one of their producer; they are read when they come again."""
    beyond: int = 0
    """Records behind the journal's end, left in the log for the live phase."""
    foreign: int = 0
    """Records without a header of ours."""

    @property
    def total(self) -> int:
        """Records that left, in order."""
        return self.first_hits + self.cache_hits

    @property
    def cache_ratio(self) -> float:
        """Peak cache as a part of all records that left."""
        return self.peak_cache_messages / self.total if self.total else 0.0

    @property
    def reads(self) -> float:
        """How many times the partition was read."""
        return self.records_read / self.partition_records if self.partition_records else 0.0


class Tally:
    """The statistics of a restoration while it runs."""

    def __init__(self) -> None:
        self.statistics = Statistics()
        self.live_offset: Offset | None = None
        self._left = False

    def count(self, **more: int) -> None:
        """Add to the counts of these names."""
        now = self.statistics
        self.statistics = replace(now, **{name: getattr(now, name) + count for name, count in more.items()})

    def poll(self, batch: Batch) -> None:
        """Count a batch that a cursor read."""
        self.count(polls=1, records_read=batch.records_read)

    def reach(self, messages: int, held_bytes: int) -> None:
        """Take note of what the cache holds."""
        now = self.statistics
        self.statistics = replace(
            now,
            peak_cache_messages=max(now.peak_cache_messages, messages),
            peak_cache_bytes=max(now.peak_cache_bytes, held_bytes),
        )

    def read_to(self, offset: int) -> None:
        """Everything before this offset was read, and what is left there for the live phase was said."""
        if not self._left:
            self.live_offset = Offset(offset)

    def leave(self, offset: int) -> None:
        """The record at this offset is left for the live phase; the first one counts."""
        if not self._left:
            self._left, self.live_offset = True, Offset(offset)


class Restored(Iterator[pa.RecordBatch]):
    """The batches of a restoration, in journal order, and its statistics so far."""

    def __init__(self, batches: Iterator[pa.RecordBatch], tally: Tally) -> None:
        self._batches = batches
        self._tally = tally

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    @property
    def statistics(self) -> Statistics:
        """What was done so far; complete when the last batch has left."""
        return self._tally.statistics

    @property
    def live_offset(self) -> Offset | None:
        """Where the live phase begins to read: no record before it lies behind the journal's end.

        None if nothing was read.
        """
        return self._tally.live_offset
