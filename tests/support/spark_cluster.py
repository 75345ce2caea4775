"""Two sites with a Spark cluster in one of them, and its executors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.process import processes_of
from zerotail.lab.up import temporary_lab

WORKERS = ("east.spark-worker-1", "east.spark-worker-2")


@contextmanager
def spark_cluster() -> Iterator[Layout]:
    """Two sites, with a Spark cluster of two workers in east, for the length of a block."""
    with temporary_lab(lambda folder: LabSettings(folder, spark_cluster=True)) as layout:
        yield layout


def executor_of(lab: Layout, worker: str) -> int | None:
    """The process that runs tasks for us at a worker."""
    for process in processes_of(lab.path):
        if process.part == worker and b"CoarseGrainedExecutorBackend" in _command_line(process.pid):
            return process.pid
    return None


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
