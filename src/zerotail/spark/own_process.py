"""A worker process for one piece of work that others must not wait for: told what to do and heard through its pipes.

It ends with the process that started it, however that ends, and not before: whoever ends a program by its terminal
(Ctrl-C) ends all of its group, and that is not the death of the piece of work. What it prints goes to standard error.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

GONE = (EOFError, OSError, pickle.UnpicklingError)
"""What telling and hearing raise when the process is not there any more."""
_END_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class OwnProcess:
    """The starter's side of it. `module` has a function `main`, which reads its standard input until that ends."""

    def __init__(self, module: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {module} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - one call to the kernel
            start_new_session=True,
        )

    def tell(self, what: object) -> None:
        """Give an order."""
        from pyspark import cloudpickle  # the process itself comes up sooner without

        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(cloudpickle.dumps(what))  # type: ignore[no-untyped-call]
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Its next answer; waits for it."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        return pickle.load(self._process.stdout)  # noqa: S301 - from the process that we started

    def kill(self) -> None:
        """End it, whatever it is doing; who waits to hear it finds out."""
        self._process.kill()

    def end(self) -> str:
        """Let it go; how it ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def end_thread(thread: Thread, process: Callable[[], OwnProcess | None]) -> None:
    """Wait for a thread that has been told to end, and end the process that it hears, also one just being started."""
    while thread.is_alive():
        hears = process()
        if hears is not None:
            hears.kill()
        thread.join(_LOOK_SECONDS)


def answers_to_the_starter() -> Any:
    """In such a process: where its answers go. Whatever anybody prints from now on goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
