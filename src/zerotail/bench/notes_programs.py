"""The two programs of the notes, rebuilt: what restorations are compared with.

The first keeps every record that is early in a dictionary, whatever it takes. The second has a cache of limited size
and one cursor: what does not fit is left, and when the log's end is reached the cursor goes back to the first record
that has not left. Both take one record after another, as the notes' programs do.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from zerotail.core.identity import Offset
from zerotail.core.order import Order
from zerotail.kafka.partition_log import PartitionLog

ROWS_PER_POLL = 500
"""As many as the notes' client, Kafka's own, gives at once."""
_NAMES_AT_ONCE = 100_000
_FIELDS = struct.Struct("<4xI8xQ")
"""Producer and serial in the header."""
Name = tuple[int, int]


@dataclass(slots=True)
class Counted:
    """What a program did, finished or not."""

    first_hits: int = 0
    cache_hits: int = 0
    peak_cache: int = 0
    polls: int = 0
    records_read: int = 0
    finished: bool = True

    @property
    def total(self) -> int:
        """Records that left, in order."""
        return self.first_hits + self.cache_hits


def run_dictionary(order: Order, log: PartitionLog) -> Counted:
    """The first program: an unlimited cache, one pass."""
    counted = Counted()
    names = _names(order)
    wanted = next(names, None)
    cache: dict[Name, bytes | None] = {}
    for messages in log.poll(None):
        counted.polls += 1
        counted.records_read += len(messages)
        for message in messages:
            name = _name(message)
            if name != wanted:
                cache[name] = message.value()
                counted.peak_cache = max(counted.peak_cache, len(cache))
                continue
            message.value()
            counted.first_hits += 1
            wanted = next(names, None)
            while wanted in cache:
                del cache[wanted]
                counted.cache_hits += 1
                wanted = next(names, None)
    counted.finished = wanted is None
    return counted


def run_rewinding(order: Order, log: PartitionLog, cache_messages: int, limit_seconds: float) -> Counted:
    """The second program: a cache of limited size, one cursor that goes back; given up after the limit."""
    counted = Counted()
    names = _names(order)
    wanted = next(names, None)
    cache: dict[Name, bytes | None] = {}
    gone: dict[int, int] = {}
    until = time.monotonic() + limit_seconds
    first, behind = log.bounds
    with log.reading(None) as cursor:
        left_at: int | None = None
        while wanted is not None:
            messages = cursor.poll(ROWS_PER_POLL)
            if messages is None:  # the end: back to the first record that was left
                cursor.move(Offset(left_at if left_at is not None else first), behind)
                left_at = None
                continue
            counted.polls += 1
            counted.records_read += len(messages)
            for message in messages:
                name = _name(message)
                if name == wanted:
                    counted.first_hits += 1
                    gone[name[0]] = name[1]
                    wanted = next(names, None)
                    while wanted in cache:
                        del cache[wanted]
                        gone[wanted[0]] = wanted[1]
                        counted.cache_hits += 1
                        wanted = next(names, None)
                elif name in cache or name[1] <= gone.get(name[0], 0):
                    continue
                elif len(cache) < cache_messages:
                    cache[name] = message.value()
                    counted.peak_cache = max(counted.peak_cache, len(cache))
                elif left_at is None:
                    left_at = message.offset()
            if time.monotonic() > until:
                break
    counted.finished = wanted is None
    return counted


def _name(message: object) -> Name:
    producer, serial = _FIELDS.unpack_from(message.headers()[0][1])  # type: ignore[attr-defined]
    return producer, serial


def _names(order: Order) -> Iterator[Name]:
    """The records of the order, one after another."""
    for first in range(order.first_position, order.next_position, _NAMES_AT_ONCE):
        end = min(first + _NAMES_AT_ONCE, order.next_position)
        producers, serials = order.records_between(first, end)
        yield from zip(producers.tolist(), serials.tolist(), strict=True)
