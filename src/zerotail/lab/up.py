"""Bring a lab up and take it down.

Everything that does not wait for something else starts at the same time: the link, the receiver, every Kafka node,
and the database of east; west's database is a copy, so it waits for east's and for the link. Spark's workers wait for
their master. Each step is told to the caller when it begins and when it has ended.

`lab.json` is written before the first process starts, and whatever goes wrong or interrupts us, everything that had
been started is ended before the error leaves this module. What a `kill -9` of ourselves leaves behind,
`take_down` finds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Refused
from zerotail.jars import require_jars
from zerotail.lab.broker import new_cluster_id, require_java
from zerotail.lab.database import programs_for
from zerotail.lab.example import EXAMPLES, remove_example, write_example
from zerotail.lab.layout import (
    OUTSIDE,
    SITES,
    STATE_FILES,
    LabSettings,
    Layout,
    find_layout,
    plan_layout,
    ports_needed,
    write_layout,
)
from zerotail.lab.part import start_part, wait_until_ready
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.lab.process import Process, kill, processes_of
from zerotail.lab.site import attach_standby, start_first_database, start_new_broker
from zerotail.lab.spark import require_spark

_UP_SECONDS = 120
_DOWN_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Step:
    """A part that is being brought up; `done` when it serves."""

    part: str
    done: bool


Tell = Callable[[Step], None]


def bring_up(settings: LabSettings, tell: Tell = lambda _step: None) -> Layout:
    """Start both sites, the link and the outside; returns when all of them serve."""
    _require_sensible(settings)
    with _only_one_command(settings.folder):
        _require_no_lab(settings.folder)
        try:
            layout = plan_layout(settings, reserve_ports(ports_needed(settings), settings.folder))
            # Everything that can be refused is refused before the first file is written.
            require_java()
            require_jars("kafka")
            programs_for(layout, "link")
            if settings.spark_cluster:
                require_spark()
            write_layout(layout)
            write_example(layout, settings)
            _start_everything(layout, tell)
        except BaseException:
            _end_everything(settings.folder)
            _remove_files(settings.folder)
            release_ports(settings.folder)
            raise
    return layout


@contextmanager
def temporary_lab(plan: Callable[[Path], LabSettings], tell: Tell = lambda _step: None) -> Iterator[Layout]:
    """A lab in a folder of its own, for the length of a block; `plan` gets the folder."""
    with tempfile.TemporaryDirectory(prefix="zerotail-") as scratch:
        folder = Path(scratch) / "lab"
        try:
            yield bring_up(plan(folder), tell)
        finally:
            take_down(folder)


def _require_sensible(settings: LabSettings) -> None:
    if settings.brokers not in (1, 3):
        raise Misused(f"a site has 1 or 3 brokers, not {settings.brokers}.", tries=["zerotail lab up --brokers 3"])
    if settings.stretch and settings.brokers != 1:
        raise Misused(
            "a stretched cluster has one broker at each of its three sites.", tries=["zerotail lab up --stretch"]
        )
    if settings.example not in EXAMPLES:
        raise Misused(f"there is no example {settings.example!r}; there are {' and '.join(EXAMPLES)}.")
    if not 1 <= settings.partitions <= 1000:
        raise Misused(f"a topic has 1 to 1000 partitions, not {settings.partitions}.")
    if not 0 <= settings.latency_ms <= 10_000:
        raise Misused(f"the latency is between 0 and 10000 ms, not {settings.latency_ms}.")


def _require_no_lab(folder: Path) -> None:
    running = len(processes_of(folder))
    if find_layout(folder) is not None or running:
        raise Refused(
            f"there is a lab in {folder} already, with {running} processes running.",
            code="ZT204",
            tries=[
                f"zerotail lab status --dir {folder}",
                f"zerotail lab down --dir {folder}",
                "zerotail lab up --dir ANOTHER",
            ],
        )
    strange = sorted(entry.name for entry in folder.iterdir())
    if strange:
        raise Refused(
            f"{folder} holds other files ({', '.join(strange[:3])}) and is no lab.",
            code="ZT209",
            why="A lab removes its folder when it is taken down.",
            tries=["zerotail lab up --dir AN-EMPTY-FOLDER"],
        )


@contextmanager
def _only_one_command(folder: Path) -> Iterator[None]:
    """Let one `up` or `down` at a time work in this folder. The folder itself is locked: it may hold other files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise _unusable(folder, os.strerror(errno.EACCES))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(f"another command brings the lab in {folder} up or down.", code="ZT211") from error
        yield
    finally:
        os.close(lock)


def _unusable(folder: Path, reason: str) -> Refused:
    return Refused(f"{folder} cannot hold a lab: {reason}.", code="ZT210", tries=["zerotail lab up --dir ANOTHER"])


def _start_everything(layout: Layout, tell: Tell) -> None:
    deadline = Deadline.after(_UP_SECONDS)

    def bring(part: str) -> None:
        start_part(layout, part)
        wait_until_ready(layout, part, deadline)

    def bring_second_database() -> None:
        link.result()
        first.result()
        attach_standby(layout, SITES[1], deadline)

    def bring_worker(part: str) -> None:
        master.result()
        bring(part)

    def told(part: str, work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            tell(Step(part, done=False))
            work()
            tell(Step(part, done=True))

        return run

    cluster_ids = cluster_ids_of(layout)
    with ThreadPoolExecutor(max_workers=len(layout.parts)) as pool:
        first = pool.submit(told(f"{SITES[0]}.postgres", lambda: start_first_database(layout, SITES[0], deadline)))
        link = pool.submit(told("link", lambda: bring("link")))
        works: list[Future[None]] = [
            first,
            link,
            pool.submit(told(f"{SITES[1]}.postgres", bring_second_database)),
            pool.submit(told("outside.receiver", lambda: bring("outside.receiver"))),
        ]
        if layout.spark_cluster:
            names = [place.part for place in layout.spark]
            master = pool.submit(told(names[0], lambda: bring(names[0])))
            works += [master, *(pool.submit(told(name, partial(bring_worker, name))) for name in names[1:])]
        for place in layout.brokers:
            if place.part not in layout.on_demand:

                def bring_broker(part: str = place.part, cluster: str = place.cluster) -> None:
                    start_new_broker(layout, part, cluster_ids[cluster], deadline)

                works.append(pool.submit(told(place.part, bring_broker)))
        try:
            finished, _ = wait(works, return_when=FIRST_EXCEPTION)
            for work in finished:
                work.result()
        except BaseException:
            # The threads end when what they wait for is gone.
            _end_until(layout.path, works)
            raise


def cluster_ids_of(layout: Layout) -> dict[str, str]:
    """A new id for each site's cluster: one and the same in a stretched lab."""
    wide = new_cluster_id()
    return {place: wide if layout.stretch else new_cluster_id() for place in (*SITES, OUTSIDE)}


def _end_until(folder: Path, works: list[Future[None]]) -> None:
    """End processes until no thread is left that could start another one."""

    def all_ended() -> bool:
        _end_everything(folder)
        return all(work.done() for work in works)

    for work in works:
        work.cancel()
    wait_until("everything that was begun has ended", all_ended, Deadline.after(_UP_SECONDS), every_seconds=0.05)


def _end_everything(folder: Path) -> list[Process]:
    parts = {process.part for process in processes_of(folder)}
    return kill(folder, parts, Deadline.after(_DOWN_SECONDS)) if parts else []


def take_down(folder: Path, *, keep_files: bool = False) -> int:
    """End every process of the lab in this folder and remove its files; answers how many were ended.

    Works without `lab.json` too, and without the folder: processes are known by its name. Files are removed only where
    `lab.json` says that they are a lab's.
    """
    with _only_one_command(folder) if folder.is_dir() else nullcontext():
        ended = len(_end_everything(folder))
        if not keep_files:
            _remove_files(folder)
        release_ports(folder)
    return ended


def _remove_files(folder: Path) -> None:
    """Remove what a lab puts into its folder, `lab.json` last, and the folder when nothing else is in it."""
    states = [folder / name for name in STATE_FILES]
    if any(state.exists() for state in states):
        for name in (*SITES, OUTSIDE, "link"):
            shutil.rmtree(folder / name, ignore_errors=True)
        remove_example(folder)
        for state in states:
            state.unlink(missing_ok=True)
    with suppress(OSError):  # other files are in it, or it is a mount point: not ours to remove
        folder.rmdir()
