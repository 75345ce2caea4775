"""How a limit of memory is shared out: the journal's order, the cursors' buffers, what is on the way, the cache.

The limit is for everything a restoration adds to the process. What is not the cache is small and known before: the
order's runs, for each cursor what the client reads ahead and the poll that was read last, and the batch that is being
put together. The cache gets the rest; when nothing worth the name is left, that is said before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.errors import Refused

_CLIENT_BYTES_PER_MESSAGE = 600
"""Beside its value, what librdkafka keeps for a message that it has read ahead."""
_OBJECT_BYTES_PER_MESSAGE = 900
"""Beside its value, what the objects of a message take in Python while it is turned into columns."""
_FIXED_BYTES = 12_000_000
"""Of the client's threads and tables, and of allocators that keep what they were given."""
_FIXED_BYTES_PER_CURSOR = 1_500_000
_MOST_ROWS, _LEAST_ROWS = 10_000, 500
_MOST_AHEAD_BYTES = 16_000_000
_LEAST_CACHE_BYTES = 1_000_000
_COPIES = 3
"""A row that leaves lies in the cache, in the piece that is put together, and in the batch that is handed out."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What each part may take."""

    cache_bytes: int
    rows_per_batch: int
    read_ahead_bytes: int
    """Of values, for each cursor."""
    other_bytes: int
    """Everything but the cache."""


def plan_memory(limit_bytes: int, *, journal_bytes: int, cursors: int, record_bytes: int) -> MemoryPlan:
    """Share out a limit; `Refused` when it leaves nothing for the cache."""
    value_bytes = max(1, record_bytes)
    rows = _MOST_ROWS
    while True:
        ahead = min(_MOST_AHEAD_BYTES, 4 * rows * value_bytes)
        client = ahead * (value_bytes + _CLIENT_BYTES_PER_MESSAGE) // value_bytes
        polls = rows * (_COPIES * value_bytes + _OBJECT_BYTES_PER_MESSAGE)
        other = journal_bytes + _FIXED_BYTES + cursors * (client + _FIXED_BYTES_PER_CURSOR) + 2 * polls
        cache = (limit_bytes - other) // _COPIES
        if cache >= _LEAST_CACHE_BYTES and (other <= limit_bytes // 2 or rows <= _LEAST_ROWS):
            return MemoryPlan(int(cache), rows, int(ahead), int(other))
        if rows <= _LEAST_ROWS:
            raise Refused(
                f"{limit_bytes:,} bytes are too few for a bounded restore with {cursors} cursors over a journal of "
                f"{journal_bytes:,} bytes; {other + _COPIES * _LEAST_CACHE_BYTES:,} are the least",
                code="ZT480",
                tries=["--memory with more", "--strategy ordered-refill --into NEW    # needs no cache"],
            )
        rows = max(_LEAST_ROWS, rows // 2)
