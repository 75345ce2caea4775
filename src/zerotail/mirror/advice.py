"""What holds a mirror up, and what to set otherwise: from what was measured while it worked.

A mirror that falls behind spends its time waiting for records (the consumer, or what is behind it, holds it up) or
waiting for acknowledgements (the producer does). Which of the two is measured; why is read off the clients' metrics:

    consumer   small fetches, many of them   fetch at least so much, and wait for it
               fetches as large as allowed   allow larger ones, where less than 100 kB are allowed
               throttled                     the source's quota
               none of these                 the source or the way to it: buffers, more cores
    producer   small batches                 linger, and larger batches
               full batches                  requests in flight (the most there may be), send buffer, compression
               retries                       the target's health
               none of these                 the target or the way to it

1. Nothing is advised to a mirror that keeps up; one that is behind is never said to, measured or not.
2. Every piece of advice has the number beside it that speaks for it.
3. Order is never given up for speed: no more requests in flight than an idempotent producer keeps in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Side = Literal["consumer", "producer", "neither"]

SMALL_FETCH_BYTES = 20_000
SMALL_BATCH_BYTES = 8_000
UNKNOWN = "unknown"
"""The cause where nobody measured what the mirror waits for, as with MirrorMaker 2."""
_MANY_FETCHES = 5.0
_NEAR = 0.7
_CLEAR = 0.55
"""More than this share of the time on one side makes it the one that holds the mirror up."""
_MOST_IN_FLIGHT = 5
_STRATEGY, _ROUND_ROBIN = "partition.assignment.strategy", "roundrobin"


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen in some seconds of work."""

    seconds: float
    copied: int
    lag_records: int
    reading_seconds: float
    sending_seconds: float
    metrics: Mapping[str, float]
    settings: Mapping[str, str]
    """Of both clients, under librdkafka's names."""
    partitions: int = 1
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to set otherwise."""

    setting: str
    now: str
    wanted: str
    because: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who holds the mirror up, why, and what to do."""

    side: Side
    cause: str
    """One word or two: tiny fetches, slow source, tiny batches, slow target, …"""
    why: str
    advice: tuple[Advice, ...]

    @property
    def is_well(self) -> bool:
        """Whether it is known that nothing has to be set otherwise."""
        return not self.advice and self.cause != UNKNOWN


def advise(seen: Measured) -> Verdict:
    """The verdict."""
    worked = seen.reading_seconds + seen.sending_seconds
    rate = seen.copied / seen.seconds if seen.seconds else 0.0
    if seen.lag_records <= max(1.0, rate):
        why = f"it keeps up: {seen.lag_records:,} records behind at {rate:,.0f} a second"
        return Verdict("neither", "keeps up", why, ())
    if not worked:
        why = (
            f"{seen.lag_records:,} records behind, and nobody says what it waits for: only a Spark mirror measures that"
        )
        return Verdict("neither", UNKNOWN, why, ())
    share = seen.reading_seconds / worked
    if share >= _CLEAR:
        return _consumer(seen, f"{share:.0%} of its time it waits for records of the source")
    if share <= 1 - _CLEAR:
        return _producer(seen, f"{1 - share:.0%} of its time it hands records to the target and waits for it")
    why = f"it waits for the source {share:.0%} of its time and for the target {1 - share:.0%}"
    return Verdict("neither", "balanced", why, _more_cores(seen))


def _consumer(seen: Measured, why: str) -> Verdict:
    size, rate = seen.metrics.get("fetch-size-avg", 0.0), seen.metrics.get("fetch-rate", 0.0)
    throttled = seen.metrics.get("fetch-throttle-time-avg", 0.0)
    most = float(seen.settings.get("fetch.message.max.bytes", "1048576"))
    if throttled > 0:
        quota = Advice("quota consumer_byte_rate at the source", "in force", "higher", f"throttled {throttled:.0f} ms")
        return Verdict("consumer", "throttled", f"{why}: the source throttles it", (quota,))
    if size >= _NEAR * most and most < SMALL_FETCH_BYTES * 5:
        larger = Advice(
            "fetch.message.max.bytes",
            f"{most:,.0f}",
            "8,000,000",
            f"fetch-size-avg {size:,.0f}: fetches are as large as they may be",
        )
        whole = seen.settings.get("fetch.max.bytes", "52428800")
        also = Advice("fetch.max.bytes", whole, "52428800 or more", "as above")
        return Verdict("consumer", "tiny fetches", f"{why}: fetches are as large as allowed, and small", (larger, also))
    if 0 < size < SMALL_FETCH_BYTES and rate > _MANY_FETCHES:
        because = f"fetch-rate {rate:,.0f}/s at fetch-size-avg {size:,.0f}"
        wait = seen.settings.get("fetch.wait.max.ms", "500")
        advice = (
            Advice("fetch.min.bytes", seen.settings.get("fetch.min.bytes", "1"), "100000", because),
            Advice("fetch.wait.max.ms", wait, "500", because),
        )
        return Verdict("consumer", "tiny fetches", f"{why}: many small fetches", advice)
    buffers = Advice(
        "socket.receive.buffer.bytes",
        seen.settings.get("socket.receive.buffer.bytes", "0 (the system's)"),
        "4194304",
        f"fetch-size-avg {size:,.0f} is not small: the way from the source is slow",
    )
    return Verdict("consumer", "slow source", f"{why}: the source, or the way to it", (buffers, *_more_cores(seen)))


def _producer(seen: Measured, why: str) -> Verdict:
    size, retries = seen.metrics.get("batch-size-avg", 0.0), seen.metrics.get("record-retry-rate", 0.0)
    most = float(seen.settings.get("batch.size", "1000000"))
    if retries > 0:
        health = Advice("brokers of the target", "retries", "none", f"record-retry-rate {retries:.2f}/s")
        return Verdict("producer", "retries", f"{why}: requests are repeated", (health,))
    if 0 < size < SMALL_BATCH_BYTES:
        because = f"batch-size-avg {size:,.0f}, batch-size-max {seen.metrics.get('batch-size-max', 0.0):,.0f}"
        advice = (
            Advice("linger.ms", seen.settings.get("linger.ms", "5"), "20", because),
            Advice("batch.size", f"{most:,.0f}", "1000000", because),
            Advice("batch.num.messages", seen.settings.get("batch.num.messages", "10000"), "10000", because),
        )
        return Verdict("producer", "tiny batches", f"{why}: batches go out nearly empty", advice)
    flying = seen.metrics.get("requests-in-flight", 0.0)
    because = f"batch-size-avg {size:,.0f}, {flying:.0f} requests in flight"
    advice = (
        Advice("max.in.flight.requests.per.connection", f"{_MOST_IN_FLIGHT}", f"{_MOST_IN_FLIGHT}, no more", because),
        Advice(
            "socket.send.buffer.bytes",
            seen.settings.get("socket.send.buffer.bytes", "0 (the system's)"),
            "4194304",
            because,
        ),
        Advice("compression.type", seen.settings.get("compression.type", "none"), "lz4", because),
    )
    return Verdict("producer", "slow target", f"{why}: the target, or the way to it", (*advice, *_more_cores(seen)))


def _more_cores(seen: Measured) -> tuple[Advice, ...]:
    if seen.partitions <= seen.tasks:
        return ()
    because = f"{seen.partitions} partitions share {seen.tasks} tasks"
    more = Advice("spark.master", f"{seen.tasks} cores", f"{min(seen.partitions, 4 * seen.tasks)} cores", because)
    dealt = seen.settings.get(_STRATEGY, _ROUND_ROBIN)
    if _ROUND_ROBIN in dealt.lower():
        return (more,)
    return (more, Advice(_STRATEGY, dealt, _ROUND_ROBIN, f"{because}: in ranges some get more of them than others"))
