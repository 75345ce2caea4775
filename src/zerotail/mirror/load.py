"""A load at the source of a mirror: records of one size, at a rate, compressed or not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from zerotail.kafka.cluster import Cluster
from zerotail.kafka.feed import Feeder

_SERIAL_BYTES = 16
_LOOK = 500


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What was written."""

    topic: str
    records: int
    bytes: int
    seconds: float
    records_per_second: float


def make_load(
    cluster: Cluster,
    topic: str,
    *,
    count: int,
    size: int,
    rate: float | None,
    compression: str,
    partitions: int,
    tell: Callable[[int], None] = lambda _done: None,
) -> LoadReport:
    """Write `count` records that are all different, over all partitions in turn."""
    feeder = Feeder(
        cluster,
        topic,
        compression_type=compression,
        queue_buffering_max_messages=200_000,
        batch_num_messages=10_000,
        linger_ms=10,
    )
    # Half of it cannot be compressed, half of it can, as with most real records.
    rest = max(0, size - _SERIAL_BYTES)
    filler = random.Random(1).randbytes(rest // 2) + b"x" * (rest - rest // 2)  # noqa: S311 - no secret
    began = time.monotonic()
    for number in range(count):
        if rate is not None and number % _LOOK == 0:
            ahead = number / rate - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
        feeder.send(b"%0*d" % (_SERIAL_BYTES, number) + filler, b"%d" % (number % 1000), number % partitions)
        if number % 10_000 == 0:
            tell(number)
    feeder.finish()
    seconds = time.monotonic() - began
    return LoadReport(topic, count, count * max(size, _SERIAL_BYTES), round(seconds, 3), round(count / seconds, 1))
