"""What the two Kafka clients of a copy measure of themselves, under the names that Kafka's own clients use.

librdkafka tells its counters once a second. Rates and averages are taken between two tellings; a maximum is the highest
since the client was made. How busy its network threads are it does not tell: that is read from the kernel, as their
share of processor time.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

INTERVAL = {"statistics.interval.ms": 1000}
_MICROSECONDS = 1e6
_NETWORK_THREADS = "rdk:broker"
_TICKS = os.sysconf("SC_CLK_TCK")


class ReaderMeasures:
    """Of the consumer; `take` is its `stats_cb`."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._last: tuple[float, float, float] | None = None

    def take(self, text: str) -> None:
        """Hear one telling."""
        told = json.loads(text)
        brokers = told.get("brokers", {}).values()
        fetches = float(sum(broker.get("req", {}).get("Fetch", 0) for broker in brokers))
        now = (told["ts"] / _MICROSECONDS, fetches, float(told.get("rxmsg_bytes", 0)))
        # The first telling counts from the client's beginning: a short load may be over when it comes.
        last = self._last or ((told["ts"] - told.get("age", 0)) / _MICROSECONDS, 0.0, 0.0)
        if now[0] > last[0]:
            seconds, count, size = (after - before for after, before in zip(now, last, strict=True))
            self.values["fetch-rate"] = count / seconds
            average = size / count if count else 0.0
            self.values["fetch-size-avg"] = average
            self.values["fetch-size-max"] = max(self.values.get("fetch-size-max", 0.0), average)
        self._last = now
        _throttle(self.values, told)


class WriterMeasures:
    """Of the producer; `take` is its `stats_cb`."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._last: tuple[float, float] | None = None

    def take(self, text: str) -> None:
        """Hear one telling."""
        told = json.loads(text)
        brokers = told.get("brokers", {}).values()
        batches = [topic.get("batchsize", {}) for topic in told.get("topics", {}).values()]
        sizes = [size for size in batches if size.get("cnt")]
        if sizes:
            self.values["batch-size-avg"] = max(float(size["avg"]) for size in sizes)
            most = max(float(size["max"]) for size in sizes)
            self.values["batch-size-max"] = max(self.values.get("batch-size-max", 0.0), most)
        self.values["requests-in-flight"] = float(sum(broker.get("waitresp_cnt", 0) for broker in brokers))
        now = (told["ts"] / _MICROSECONDS, float(sum(broker.get("txretries", 0) for broker in brokers)))
        if self._last is not None and now[0] > self._last[0]:
            self.values["record-retry-rate"] = (now[1] - self._last[1]) / (now[0] - self._last[0])
        self._last = now


class NetworkShare:
    """How much of the time the network threads of this process worked, and how much they waited."""

    def __init__(self) -> None:
        self._last = (time.monotonic(), *_network_seconds())

    def values(self) -> dict[str, float]:
        """Since it was asked last."""
        now = (time.monotonic(), *_network_seconds())
        elapsed, worked, threads = now[0] - self._last[0], now[1] - self._last[1], now[2]
        self._last = now
        if elapsed <= 0 or not threads:
            return {}
        busy = min(1.0, max(0.0, worked / elapsed))
        return {"io-ratio": busy, "io-wait-ratio": 1.0 - busy}


def _throttle(values: dict[str, float], told: dict[str, Any]) -> None:
    throttles = [broker["throttle"] for broker in told.get("brokers", {}).values() if broker.get("throttle")]
    values["fetch-throttle-time-avg"] = max((float(one.get("avg", 0)) for one in throttles), default=0.0)
    most = max((float(one.get("max", 0)) for one in throttles), default=0.0)
    values["fetch-throttle-time-max"] = max(values.get("fetch-throttle-time-max", 0.0), most)


def _network_seconds() -> tuple[float, int]:
    """Processor time of librdkafka's network threads, and how many there are."""
    total, threads = 0.0, 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError, ValueError, IndexError):
            stat = (task / "stat").read_bytes()
            name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode()
            if name.startswith(_NETWORK_THREADS):
                fields = stat[stat.rindex(b")") + 2 :].split()
                total += (int(fields[11]) + int(fields[12])) / _TICKS
                threads += 1
    return total, threads
