"""A process is killed, or its disk fails, at a chosen system call: strace, attached to it while it stands still."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.output import wait_for_line
from zerotail.deadline import Deadline, wait_until

PATIENCE_SECONDS = 60.0
FILE_CALLS = (
    *("openat", "close", "read", "pread64", "write", "pwrite64", "lseek", "newfstatat", "getdents64"),
    *("fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir", "flock"),
)
NETWORK_CALLS = ("socket", "connect", "sendto", "recvfrom", "poll")
CHANGING_CALLS = ("write", "fsync", "rename", "unlink", "connect", "sendto")
"""Of a drain: whatever it does between two of these changes nothing anywhere."""
NOTHING = "getppid:signal=KILL"
"""A call that nobody makes."""


def require_strace() -> str:
    """Where strace is."""
    found = shutil.which("strace")
    assert found, "strace makes processes fail at a chosen call, and it is not installed: apt-get install strace"
    return found


@contextmanager
def traced(pid: int, injected: str) -> Iterator[None]:
    """The process, which stands still, runs on with a fault injected; behind the block nobody traces it."""
    calls = injected.partition(":")[0]
    command = [require_strace(), "-f", "-q", "-o", os.devnull, "-e", f"trace={calls}", "-e", f"inject={injected}"]
    tracer = subprocess.Popen([*command, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    try:
        wait_until(
            "strace is attached",
            lambda: tracer.poll() is None and all(_is_traced(pid, thread) for thread in threads),
            Deadline.after(PATIENCE_SECONDS),
            every_seconds=0.005,
        )
        os.kill(pid, signal.SIGCONT)
        yield
    finally:
        if tracer.poll() is None:
            tracer.terminate()
        tracer.communicate()


def _is_traced(pid: int, thread: int) -> bool:
    return "TracerPid:\t0" not in Path(f"/proc/{pid}/task/{thread}/status").read_text()


class SpoolProcess:
    """`support.spool_process`, asked for one run after the other."""

    def __init__(self, folder: Path, config: Path | str = "") -> None:
        self.folder = folder
        self.config = str(config)
        self.code = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "support.spool_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    @property
    def told(self) -> list[str]:
        """What the process knows to be durable, of all runs."""
        path = self.folder.with_suffix(".told")
        # A line that a kill cut short was not told.
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def run(self, phase: str, ids: list[str], injected: str) -> int:
        """The exit code of one run; -9 when it was killed."""
        pid = self.begin(phase, ids)
        with traced(pid, injected):
            self.code = self.ended()
        return self.code

    def begin(self, phase: str, ids: list[str]) -> int:
        """Begin a run; the process of it, once it is ready."""
        asked = {"phase": phase, "folder": str(self.folder), "config": self.config, "ids": ids}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return int(wait_for_line(self._server, "ready", seconds=PATIENCE_SECONDS).split()[1])

    def ended(self) -> int:
        """The exit code of the run, once it has ended."""
        return int(wait_for_line(self._server, "ended", seconds=PATIENCE_SECONDS).split()[1])

    def kill_at_every(self, call: str) -> Iterator[tuple[str, int]]:
        """Arms a kill at the first system call of a kind, the second, …; ends behind a run that was not killed.

        The caller runs each with `run`, and tells by `code` how it ended.
        """
        self.code = -9
        number = 0
        while self.code == -9:
            number += 1
            yield f"{call}:signal=KILL:when={number}", number

    def end(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        assert self._server.stdout is not None
        self._server.stdout.close()
        self._server.wait(PATIENCE_SECONDS)
