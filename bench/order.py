"""What order costs: records per second of the header, the position, the segment's encoding and the
restorations.

    python bench/order.py [--records N] [--repeat R]

Everything is in memory, on one core, in one process. A restoration is shown beside a plain pass over the same
batches, which decodes the headers and does nothing else, measured in the same round; the work is checked:
each restoration must give every record at its place.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zerotail.core.identity import Offset, ProducerNumber, Serial
from zerotail.core.order import Numbers, Order, Runs, concatenate
from zerotail.core.record import decode_column, digest_column, encode_column
from zerotail.core.refill import merge_sources
from zerotail.core.restoration import (
    Batch,
    CacheLimit,
    Restored,
    Statistics,
    bounded,
    scatter,
    skip,
    unbounded,
)
from zerotail.core.segment import decode_order, encode_order

VALUE_BYTES = 100
ROWS_PER_POLL = 10_000
SEGMENT_RECORDS = 1_000


def interleaving(rng: np.random.Generator, records: int, producers: int, mean_run: float) -> Numbers:
    """Producers, record by record: runs of geometric length."""
    count = int(2 * records / mean_run) + 10
    owners, lengths = rng.integers(1, producers + 1, count), rng.geometric(1 / mean_run, count)
    return np.repeat(owners, lengths)[:records]


@dataclass
class MemoryLog:
    """A partition in memory, read in polls of equal size."""

    payload: pa.RecordBatch

    @property
    def records(self) -> int:
        return int(self.payload.num_rows)

    def open(self, offset: Offset | None) -> Iterator[Batch]:
        begin = offset or 0
        return (
            Batch.of(self.payload.slice(first, ROWS_PER_POLL)) for first in range(begin, self.records, ROWS_PER_POLL)
        )


def log_of(each: Numbers) -> MemoryLog:
    """Records of these producers, each producer's serials from 1 on; values differ."""
    serials = np.zeros(len(each), dtype=np.int64)
    for producer in np.unique(each):
        mine = each == producer
        serials[mine] = np.arange(1, int(mine.sum()) + 1)
    values = np.zeros((len(each), VALUE_BYTES), dtype=np.uint8)
    values[:, :16] = np.stack([each, serials], axis=1).view(np.uint8)
    offsets = np.arange(len(each) + 1, dtype=np.int32) * np.int32(VALUE_BYTES)
    column = pa.Array.from_buffers(pa.binary(), len(each), [None, pa.py_buffer(offsets), pa.py_buffer(values)])
    headers = encode_column(257, each, serials, 0)
    return MemoryLog(pa.record_batch({"zt": headers, "offset": np.arange(len(each), dtype=np.int64), "value": column}))


def records_in(batches: Iterator[pa.RecordBatch], expected: tuple[Numbers, Numbers] | None) -> int:
    """Run through the batches; with `expected`, check every record's place."""
    position = 0
    for batch in batches:
        if expected is not None:
            headers = decode_column(batch.column("zt"))
            end = position + batch.num_rows
            assert np.array_equal(headers.producers, expected[0][position:end])
            assert np.array_equal(headers.serials, expected[1][position:end])
        position += batch.num_rows
    return position


def seconds(work: Callable[[], object]) -> float:
    """The CPU time that it takes."""
    begin = time.process_time()  # neighbours on the machine matter less than to the clock on the wall
    work()
    return time.process_time() - begin


def measure_parts(rng: np.random.Generator, records: int, repeat: int) -> None:
    """Header, position and encoding, in million records per second."""
    print(f"{'part':50} {'million records/s':>18}")

    def show(name: str, work: Callable[[], object], count: int = records) -> None:
        work()
        print(f"{name:50} {count / median(seconds(work) for _ in range(repeat)) / 1e6:18.1f}")

    payload = log_of(interleaving(rng, records, 2, 2)).payload
    headers = payload.column("zt")
    found = decode_column(headers)
    show("header column, decode", lambda: decode_column(headers))
    mixed = pa.concat_arrays([headers.slice(1), pa.array([None], type=pa.binary())])
    show("header column, decode, one foreign row", lambda: decode_column(mixed))
    show("header column, encode", lambda: encode_column(257, found.producers, found.serials, found.digests))
    few = payload.column("value").slice(0, 100_000)
    show("digests of values", lambda: digest_column(few), len(few))
    for producers, mean_run in ((2, 2.0), (2, 64.0), (16, 2.0)):
        each = interleaving(rng, records, producers, mean_run)
        shape = f"{producers} producers, runs of {mean_run:g}"
        order = Order(Runs.of_records(each))
        owners, serials = order.records_between(0, len(order))

        def places(order: Order = order, owners: Numbers = owners, serials: Numbers = serials) -> None:
            for first in range(0, len(owners), ROWS_PER_POLL):
                order.positions(owners[first : first + ROWS_PER_POLL], serials[first : first + ROWS_PER_POLL])

        show(f"index of runs, {shape}", lambda each=each: Order(Runs.of_records(each)))  # type: ignore[misc]
        show(f"position, {shape}", places)
        cuts = [Runs.of_records(each[a : a + SEGMENT_RECORDS]) for a in range(0, len(each), SEGMENT_RECORDS)]
        encoded = [encode_order(cut) for cut in cuts]
        assert concatenate(decode_order(segment) for segment in encoded) == order.runs
        show(f"segments of {SEGMENT_RECORDS}, encode, {shape}", lambda cuts=cuts: [*map(encode_order, cuts)])  # type: ignore[misc]
        show(f"segments of {SEGMENT_RECORDS}, decode, {shape}", lambda e=encoded: [*map(decode_order, e)])  # type: ignore[misc]
        size = sum(len(segment.encoded) for segment in encoded) / len(each)
        print(f"{'    bytes per record':50} {size:18.4f}")


def disorders(
    rng: np.random.Generator, records: int
) -> Iterator[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Name, journal and log: what lay in the partition, and how it was refilled."""

    def refill(journal: Numbers, mean_run: float) -> Numbers:
        return rng.permutation(journal) if mean_run <= 1 else _bursts(rng, journal, mean_run)

    for producers, mean_run in ((2, 2.0), (2, 10_000.0), (16, 2.0)):
        journal = interleaving(rng, records, producers, mean_run)
        shape = f"{producers} producers, runs of {mean_run:g}"
        yield f"{shape}; log in order", journal, journal
        yield f"{shape}; log at random", journal, refill(journal, 1)
        yield f"{shape}; log in bursts of 500", journal, refill(journal, 500)
        yield f"{shape}; one producer after another", journal, np.sort(journal)[::-1]


def _bursts(rng: np.random.Generator, journal: Numbers, mean_run: float) -> Numbers:
    """The same records per producer, in bursts: pieces of each producer in random order."""
    owners, lengths = [], []
    for owner, count in zip(*np.unique(journal, return_counts=True), strict=True):
        borders = np.linspace(0, count, int(count // mean_run) + 2).astype(np.int64)
        lengths.append(np.diff(borders))
        owners.append(np.full(len(borders) - 1, owner))
    mix = rng.permutation(sum(map(len, owners)))
    return np.repeat(np.concatenate(owners)[mix], np.concatenate(lengths)[mix])


COLUMNS = ("ns/record", "x plain", "first hits", "cache hits", "peak cache", "ratio", "polls", "reads")


def measure_restorations(rng: np.random.Generator, records: int, repeat: int) -> None:
    """Each restoration beside a plain pass over the same batches."""
    for name, journal, log_order in disorders(rng, records):
        order, log = Order(Runs.of_records(journal)), log_of(log_order)
        print(f"\n{name}\n  {'':10}" + "".join(f"{column:>11}" for column in COLUMNS))
        plain = [0.0]
        for way, restore in ways(order, log).items():
            result = restore()
            if way == "skip":
                assert records_in(result, None) == int((journal != 1).sum())
            else:
                assert records_in(result, order.records_between(0, len(order))) == records
            figures = result.statistics if isinstance(result, Restored) else Statistics()
            plain, own = measure_side_by_side(log, restore, repeat)
            ratio = median(a / b for a, b in zip(own, plain, strict=True))
            print(
                f"  {way:10}{median(own) / records * 1e9:11.1f}{ratio:11.1f}{figures.first_hits:11,}"
                f"{figures.cache_hits:11,}{figures.peak_cache_messages:11,}{figures.cache_ratio:11.1%}"
                f"{figures.polls:11,}{figures.reads:11.2f}"
            )
        print(f"  {'plain pass':10}{median(plain) / records * 1e9:11.1f}", flush=True)


def ways(order: Order, log: MemoryLog) -> dict[str, Callable[[], Iterator[pa.RecordBatch]]]:
    """The restorations to measure, each ready to be run as often as one likes."""
    limit = CacheLimit(messages=20_000, bytes=20_000 * 200)
    begin_sources = sources_of(order)
    return {
        "skip": lambda: skip({ProducerNumber(1): Serial(10**9)}, log.open(None)),
        "unbounded": lambda: unbounded(order, log.open(None)),
        "scatter": lambda: scatter(order, log.open(None)),
        "bounded": lambda: bounded(order, log, limit),
        "refill": lambda: merge_sources(order, begin_sources()),
    }


def measure_side_by_side(
    log: MemoryLog, restore: Callable[[], Iterator[pa.RecordBatch]], repeat: int
) -> tuple[list[float], list[float]]:
    """Seconds of plain passes and of restorations, in turn."""
    plain, own = [], []
    for _ in range(repeat):
        plain.append(seconds(lambda: sum(len(batch) for batch in log.open(None))))
        own.append(seconds(lambda: records_in(restore(), None)))
    return plain, own


def sources_of(order: Order) -> Callable[[], dict[ProducerNumber, Iterator[pa.RecordBatch]]]:
    """Each producer's records as a database gives them, in batches of serials, as often as one likes."""
    whole = {p: log_of(np.full(last, p, dtype=np.int64)).payload for p, last in order.vector_after.items()}

    def begin() -> dict[ProducerNumber, Iterator[pa.RecordBatch]]:
        return {
            producer: iter([rows.slice(a, ROWS_PER_POLL) for a in range(0, rows.num_rows, ROWS_PER_POLL)])
            for producer, rows in whole.items()
        }

    return begin


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print(f"{given.records:,} records of {VALUE_BYTES} bytes, polls of {ROWS_PER_POLL:,}, ", end="")
    print(f"median of {given.repeat}; CPU time of one core\n")
    measure_parts(np.random.default_rng(1), given.records, given.repeat)
    measure_restorations(np.random.default_rng(2), given.records, given.repeat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
