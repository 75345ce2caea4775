"""A pipeline as a process that is measured: started, warmed up, loaded, counted at the receiver, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unfinished
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.feed import last_serial

WARM_UP = 200_000
_READY_SECONDS = 120.0
_ARRIVE_SECONDS = 300.0
_END_SECONDS = 60.0
_LOOK_SECONDS = 0.05
# By serial, where there is an index: looking for a time would read a history of millions, and be measured as well.
_GIVEN_AT = """
select extract(epoch from submitted_at)::float from zerotail.instruction
 where producer = %s and partition = %s and serial = %s
"""
Place = tuple[ProducerNumber, PartitionNumber, Serial]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What is started from which configuration, what it says when it runs, where its messages arrive."""

    name: str
    module: tuple[str, ...]
    config: Path
    ready: tuple[str, ...]
    channel: str
    path: str = ""
    """A folder of modules that its processes find before all others."""

    @property
    def environment(self) -> dict[str, str]:
        """What its processes find."""
        paths = [self.path, os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))} if self.path else dict(os.environ)

    @property
    def command(self) -> list[str]:
        """How it is started."""
        return [sys.executable, "-m", *self.module, "--site", "east", "--config", str(self.config)]


@dataclass(frozen=True, slots=True)
class Bench:
    """A lab in which pipelines are loaded."""

    layout: Layout
    accounts: int
    partitions: int
    warm_up: int = WARM_UP
    """Instructions that pass before anything is measured: code is compiled, connections are made."""

    def arrived(self, channel: str) -> int:
        """How many different messages the receiver has on a channel."""
        control = ReceiverControl(self.layout.receiver_control_port)
        found = control.totals(deadline=Deadline.after(30)).partitions
        return sum(totals.distinct for totals in found if totals.channel == channel)

    @contextmanager
    def running(self, pipeline: Pipeline) -> Iterator[int]:
        """The pipeline, warm, for the length of a block; the leader of its session."""
        path = self.layout.path / f"{pipeline.name}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                pipeline.command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=pipeline.environment,
            )
        try:
            _wait_until_ready(pipeline, process, path)
            self.load(pipeline, self.warm_up)
            yield process.pid
        finally:
            _end(process)
            path.unlink()

    def load(self, pipeline: Pipeline, count: int, rate: float = 0.0) -> float:
        """Insert so many instructions and wait until all have arrived; the seconds from the first row on."""
        before = self.arrived(pipeline.channel)
        with session(dsn(self.layout.database("east")), Deadline.after(30)) as connection:
            lasts = self._last_serials(connection)
            command = [sys.executable, "-m", "zerotail.bench.loading", "--config", str(pipeline.config)]
            command += ["--count", str(count), "--rate", str(rate), "--accounts", str(self.accounts)]
            loader = subprocess.Popen(command)
            try:
                wait_until(
                    f"{count} messages of the pipeline {pipeline.name} have arrived",
                    lambda: self.arrived(pipeline.channel) - before >= count,
                    Deadline.after(_ARRIVE_SECONDS),
                    every_seconds=_LOOK_SECONDS,
                )
                ended = time.time()
            finally:
                loader.kill()
                loader.wait()
            return ended - min(_given_after(connection, lasts))

    def _last_serials(self, connection: Connection) -> list[Place]:
        """Where each producer stands in each partition."""
        found = connection.execute(b"select producer from zerotail.producer").fetchall()
        lanes = [(ProducerNumber(row[0]), PartitionNumber(at)) for row in found for at in range(self.partitions)]
        return [(*lane, last_serial(connection, *lane)) for lane in lanes]


def _given_after(connection: Connection, places: list[Place]) -> Iterator[float]:
    """When the instruction behind each place was given, if there is one."""
    for producer, partition, last in places:
        found = connection.execute(_GIVEN_AT.encode(), (producer, partition, last + 1)).fetchone()
        if found is not None:
            yield float(found[0])


def _wait_until_ready(pipeline: Pipeline, process: subprocess.Popen[bytes], path: Path) -> None:
    def ready() -> bool:
        said = path.read_text(errors="replace")
        if process.poll() is not None:
            raise Unfinished(f"the pipeline {pipeline.name} ended: {said[-500:]}", code="ZT802")
        return all(word in said for word in pipeline.ready)

    wait_until(f"the pipeline {pipeline.name} runs", ready, Deadline.after(_READY_SECONDS), every_seconds=0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
