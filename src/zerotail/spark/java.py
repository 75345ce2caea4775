"""The JVM of a session: it ends in time, whatever it is doing.

Spark stops in its own time: queries one after the other, then the context, and the JVM a second behind. Whoever must be
gone soon does not wait for that. A JVM that is told to end removes its scratch files; one that does not is killed, as
it may be at any time: the heads say where to go on.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import warnings
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from threading import Thread

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

from zerotail.children import find_children

_LAST_SECONDS = 1.5
"""From the word to end until it is killed."""


class Java:
    """The process in which the driver of a session runs. One that we did not start ends when it pleases."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._process: subprocess.Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
        self._watch: Thread | None = None

    def end_within(self, seconds: float) -> None:
        """Let it have so many seconds; only the first word counts."""
        if self._watch is None and self._process is not None:
            self._watch = Thread(target=_end_process, args=(self._process, seconds), name="java", daemon=True)
            self._watch.start()

    def end(self) -> None:
        """Stop the session and return when the JVM is gone."""
        if self._process is None or self._process.poll() is None:
            with suppress(Py4JError, ConnectionError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it goes meanwhile is no news
                self._spark.stop()
        if self._process is not None:
            _end_process(self._process, 0)
            SparkContext._gateway = SparkContext._jvm = None  # a session that comes later needs another one


def end_java(before: Set[int]) -> None:
    """End a JVM that was started and has no session: also one of which nobody knows, since its start went wrong before
    it was told where to find it. `before`: the children that this process had until then.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        _end_process(process, 0)
        SparkContext._gateway = SparkContext._jvm = None
    for pid in find_children() - before:
        _end_child(pid)


def _end_child(pid: int) -> None:
    """Tell it to end, and kill it when it does not."""
    with suppress(ProcessLookupError), _open_handle(pid) as handle:
        for number, patience in ((signal.SIGTERM, _LAST_SECONDS), (signal.SIGKILL, None)):
            os.kill(pid, number)
            if select.select([handle], [], [], patience)[0]:
                break
    with suppress(ChildProcessError):  # its own object has collected it
        os.waitpid(pid, 0)


@contextmanager
def _open_handle(pid: int) -> Iterator[int]:
    """A descriptor that can be read when the process has ended."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def _end_process(process: subprocess.Popen[bytes], seconds: float) -> None:
    for go, patience in ((None, seconds), (process.terminate, _LAST_SECONDS), (process.kill, None)):
        if go is not None:
            go()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return
