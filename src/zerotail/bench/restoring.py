"""One measurement of a restore, as a process of its own: nobody's memory is taken for another's.

What is asked comes as one JSON object on the command line, what was found leaves as one on stdout. The journal is read
before the clock starts, for all methods alike; the clock covers connecting, reading and, for all but the plain read,
putting in order and proving.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from zerotail.bench.notes_programs import Counted, run_dictionary, run_rewinding
from zerotail.bench.restore_case import PARTITION, Case
from zerotail.core.identity import SiteName, TopicName
from zerotail.core.record import HEADER_NAME
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.garbage import collection_paused
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.kafka.plain_writer import write_plainly
from zerotail.restore import Place, Wish, open_in_order, plan_restore
from zerotail.restore.peak import PeakMemory
from zerotail.restore.place import read_recorded
from zerotail.restore.refill import proven_records, refill


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure."""

    method: str
    """plain, rested, unbounded, bounded, spilled, checked, dictionary, rewinding, produce or refill."""
    case: Case
    bootstrap: str
    dsn: str
    cache: int = 0
    limit_seconds: float = 90.0
    into: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found."""

    seconds: float
    cpu_seconds: float
    """Processor time of all threads of the process: it does not depend on who else uses the machine."""
    records: int
    """That left, in order; for a plain read, that were read."""
    finished: bool
    peak_memory_bytes: int
    """By how much the process grew while it was measured, as the operating system saw it."""
    polls: int = 0
    first_hits: int = 0
    cache_hits: int = 0
    peak_cache: int = 0
    reads: float = 1.0


class Meter:
    """Time and memory from the moment at which it is made."""

    def __init__(self) -> None:
        self._memory = PeakMemory()
        self._began, self._used = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> tuple[float, float]:
        """By the clock, and of the processor."""
        return time.perf_counter() - self._began, time.process_time() - self._used

    @property
    def grown_bytes(self) -> int:
        """Of memory."""
        return self._memory.grown_bytes


def measure(asked: Asked) -> Measured:
    """Measure in this process."""
    match asked.method:
        case "plain":
            return _plain(asked)
        case "rested":
            with collection_paused():
                return _plain(asked)
        case "unbounded" | "bounded" | "checked":
            return _restore(asked)
        case "spilled":
            with tempfile.TemporaryDirectory(prefix="zerotail-spill-") as folder:
                return _restore(asked, Path(folder))
        case "dictionary" | "rewinding":
            return _by_the_notes(asked)
        case "produce" | "refill":
            return _write(asked)
        case method:
            raise ValueError(f"there is no method {method}")


def place_of(case: Case, bootstrap: str, dsn: str) -> Place:
    """Where a case lies."""
    return Place(Cluster(bootstrap), dsn, SiteName("east"), case.stage, case.topic, PARTITION, TopicSettings(1, 1))


def _place(asked: Asked) -> Place:
    return place_of(asked.case, asked.bootstrap, asked.dsn)


def _plain(asked: Asked) -> Measured:
    """Read all, and take value and header out of every record."""
    log = read_recorded(_place(asked)).log(_place(asked))
    meter = Meter()
    records = polls = 0
    for messages in log.poll(None):
        values = [message.value() for message in messages]
        headers = [_taken_out(message) for message in messages]
        records += len(values)
        polls += 1
        if len(headers) != len(values):
            raise AssertionError("every record has a header")
    return Measured(*meter.seconds, records, True, meter.grown_bytes, polls)


def _taken_out(message: Any) -> bytes | None:
    for name, value in message.headers():
        if name == HEADER_NAME:
            return bytes(value)
    return None


def _restore(asked: Asked, spill: Path | None = None) -> Measured:
    limited = asked.method in ("bounded", "spilled")
    strategy = RestoreStrategy.BOUNDED if limited else RestoreStrategy.UNBOUNDED
    wish = Wish(strategy, cache_messages=asked.cache if limited else None, spill=spill)
    seen = plan_restore(_place(asked), wish)
    meter = Meter()
    records = open_in_order(seen, check_values=asked.method == "checked")
    left = sum(batch.num_rows for batch in records)
    found = records.statistics
    return Measured(
        *meter.seconds,
        left,
        left == asked.case.records,
        meter.grown_bytes,
        found.polls,
        found.first_hits,
        found.cache_hits,
        found.peak_cache_messages,
        found.records_read / asked.case.records,
    )


def _by_the_notes(asked: Asked) -> Measured:
    recorded = read_recorded(_place(asked))
    log = recorded.log(_place(asked))
    meter = Meter()
    if asked.method == "dictionary":
        counted: Counted = run_dictionary(recorded.journal.order, log)
    else:
        counted = run_rewinding(recorded.journal.order, log, asked.cache, asked.limit_seconds)
    return Measured(
        *meter.seconds,
        counted.total,
        counted.finished,
        meter.grown_bytes,
        counted.polls,
        counted.first_hits,
        counted.cache_hits,
        counted.peak_cache,
        counted.records_read / asked.case.records,
    )


def _write(asked: Asked) -> Measured:
    """Write the journal's records to a new topic: from memory by a plain producer, or by the refill from the rows."""
    place = _place(asked)
    recorded = read_recorded(place)
    topic = TopicName(asked.into)
    ensure_topic(admin_client(place.cluster), topic, place.shape)
    if asked.method == "refill":
        meter = Meter()
        written = refill(place, recorded, topic)
        return Measured(*meter.seconds, written, True, meter.grown_bytes)
    at_hand = [*_records_at_hand(place, recorded)]
    meter = Meter()
    write_plainly(place.cluster, topic, PARTITION, at_hand)
    return Measured(*meter.seconds, len(at_hand), True, meter.grown_bytes)


def _records_at_hand(place: Place, recorded: Any) -> Iterator[tuple[bytes, bytes]]:
    for records in proven_records(place, recorded, {}):
        yield from zip(records.values, records.headers, strict=True)


def main() -> None:
    """Measure what the one argument says."""
    asked = msgspec.convert(json.loads(sys.argv[1]), Asked)
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(msgspec.to_builtins(measure(asked))) + "\n")


if __name__ == "__main__":
    main()
