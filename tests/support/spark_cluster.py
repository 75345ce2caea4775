"""Two sites with a Spark cluster in one of them, and its executors."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.process import processes_of
from zerotail.lab.spark import secret_of
from zerotail.lab.up import temporary_lab

WORKERS = ("east.spark-worker-1", "east.spark-worker-2")


def spark_cluster() -> AbstractContextManager[Layout]:
    """Two sites, with a Spark cluster of two workers in east, for the length of a block."""
    return temporary_lab(lambda folder: LabSettings(folder, spark_cluster=True))


def on_cluster(lab: Layout, **settings: str) -> dict[str, Any]:
    """The section `spark` of a configuration; processes that are started from now on know the cluster's secret."""
    os.environ["ZT_SPARK_SECRET"] = secret_of(lab).read_text()
    secret = {"spark.authenticate.secret": "${env:ZT_SPARK_SECRET}"}
    return {"master": lab.spark_master, "settings": {**secret, **settings}}


def executor_of(lab: Layout, worker: str) -> int | None:
    """The process that runs tasks for us at a worker."""
    for process in processes_of(lab.path):
        if process.part == worker and b"CoarseGrainedExecutorBackend" in _command_line(process.pid):
            return process.pid
    return None


def kill_executor(lab: Layout, worker: str) -> int:
    """Kill -9 the process that runs tasks at a worker, as soon as there is one; which it was."""
    pid = wait_until(f"{worker} has an executor", lambda: executor_of(lab, worker), Deadline.after(60))
    os.kill(pid, signal.SIGKILL)
    return pid


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
