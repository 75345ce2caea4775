"""Our daemon forks workers that have everything imported, and only while it is a single thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

_START = "import sys; sys.argv = ['daemon', 'pyspark.worker']; from zerotail.spark.daemon import main; main()"
_THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start();"


def daemon_that_runs(program: str) -> tuple[str, int]:
    """What a daemon is and how many threads it has, once it has told Spark its port."""
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert len(process.stdout.read(4)) == 4
        line = Path(f"/proc/{process.pid}/cmdline").read_text()
        threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
        process.stdin.close()  # so does Spark when it ends
        process.wait(30)
    return line, threads


def test_it_has_a_single_thread_with_everything_imported() -> None:
    line, threads = daemon_that_runs(_START)
    assert "zerotail.spark.daemon" in line
    assert threads == 1


def test_with_another_thread_sparks_own_daemon_takes_its_place() -> None:
    line, threads = daemon_that_runs(_THREAD + _START)
    assert line.split("\0")[1:4] == ["-m", "pyspark.daemon", "pyspark.worker"]
    assert threads == 1
