"""What a spool takes: puts per second of threads that share an `fsync`, beside an `fsync` for every put.

    python bench/spool.py [--puts N] [--folder DIR] [--json]

Every put counts when its caller was told that it is durable; 50,000 a second from up to 16 threads are wanted. `put`
waits each time; with `put_soon` a thread has several on their way and waits for all of them. The baseline is one file,
one lock, one `fdatasync` per put. What was put is read back and counted at the end of each run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock, Thread

from zerotail import Spool
from zerotail.spool.frame import encode_entry, encode_group

VALUE = b"x" * 100
WANTED_PER_SECOND, MOST_THREADS = 50_000, 16
CASES = ((1, 1), (4, 1), (16, 1), (64, 1), (128, 1), (4, 16), (8, 16), (16, 16), (16, 64))


@dataclass(frozen=True, slots=True)
class Measured:
    """One way of putting."""

    way: str
    threads: int
    on_their_way: int
    """Puts that each thread has begun and not waited for."""
    puts: int
    puts_per_second: int
    processor_us_per_put: float


def run_threads(threads: int, work: Callable[[int], None]) -> tuple[float, float]:
    """Seconds, and seconds of the processor, until all threads are done."""
    running = [Thread(target=work, args=(number,)) for number in range(threads)]
    began, processor_began = time.perf_counter(), time.process_time()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - began, time.process_time() - processor_began


def measure_spool(folder: Path, threads: int, on_their_way: int, puts: int) -> Measured:
    """Puts into a spool, checked."""
    each = max(1, puts // threads)

    def put(thread: int) -> None:
        if on_their_way == 1:
            for number in range(each):
                spool.put(f"c-{thread}-{number}", VALUE)
            return
        for first in range(0, each, on_their_way):
            receipts = [
                spool.put_soon(f"c-{thread}-{first + n}", VALUE) for n in range(min(on_their_way, each - first))
            ]
            for receipt in receipts:
                receipt.wait()

    with Spool(folder, "bench") as spool:
        seconds, processor = run_threads(threads, put)
    with Spool(folder) as spool:
        names = {entry.id for entry in spool.read(0, most_entries=puts + 1, most_bytes=10**12)}
    assert names == {f"c-{thread}-{number}" for thread in range(threads) for number in range(each)}
    shutil.rmtree(folder)
    done = each * threads
    way = "put" if on_their_way == 1 else "put_soon"
    return Measured(way, threads, on_their_way, done, round(done / seconds), round(processor / done * 1e6, 1))


def measure_baseline(folder: Path, threads: int, puts: int) -> Measured:
    """A file under a lock, with an `fdatasync` for every put."""
    folder.mkdir()
    each = max(1, puts // threads)
    file = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    lock = Lock()

    def put(thread: int) -> None:
        for number in range(each):
            entry = encode_entry(f"c-{thread}-{number}".encode(), 0, time.time_ns() // 1000, VALUE)
            with lock:
                os.write(file, encode_group(number, [entry]))
                os.fdatasync(file)

    seconds, processor = run_threads(threads, put)
    os.close(file)
    shutil.rmtree(folder)
    done = each * threads
    return Measured("fsync each", threads, 1, done, round(done / seconds), round(processor / done * 1e6, 1))


def main() -> int:
    """Every case, three times, the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puts", type=int, default=60_000, help="of each run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure; else a temporary one")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as home:
        place = Path(home) / "queue"
        runs = [[measure_baseline(place, 16, given.puts // 60) for _ in range(given.repeat)]]
        for threads, on_their_way in CASES:
            puts = given.puts * min(threads * on_their_way, 60) // 60
            runs.append([measure_spool(place, threads, on_their_way, puts) for _ in range(given.repeat)])
    results = [sorted(group, key=lambda one: one.puts_per_second)[len(group) // 2] for group in runs]
    load = os.getloadavg()[0]
    best = max((one for one in results if one.threads <= MOST_THREADS), key=lambda one: one.puts_per_second)
    reached = best.puts_per_second >= WANTED_PER_SECOND
    if given.json:
        told = {"load": load, "reached": reached, "results": [asdict(one) for one in results]}
        print(json.dumps({"schema": "zerotail/bench-spool/1", **told}))
        return 0 if reached else 1
    print(f"{'way':<12}{'threads':>8}{'on their way':>14}{'puts/s':>10}{'processor':>14}")
    for one in results:
        print(
            f"{one.way:<12}{one.threads:>8}{one.on_their_way:>14}{one.puts_per_second:>10}"
            f"{one.processor_us_per_put:>11} us"
        )
    print(f"load of the machine: {load:.1f}")
    word = "reached" if reached else "NOT reached"
    print(f"{word}: {best.puts_per_second:,} puts/s from {best.threads} threads (wanted {WANTED_PER_SECOND:,})")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
