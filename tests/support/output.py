"""Small things that several tests need."""

from __future__ import annotations

import select
import subprocess

from zerotail.deadline import Deadline


def wait_for_line(process: subprocess.Popen[str], word: str, *, seconds: float = 30.0) -> str:
    """The first line of the process's output that begins with `word`; it prints line by line."""
    deadline = Deadline.after(seconds)
    assert process.stdout is not None
    while not deadline.passed:
        ready, _, _ = select.select([process.stdout], [], [], deadline.seconds_left)
        if not ready:
            break
        line = process.stdout.readline()
        if not line or line.startswith(word):
            return line
    raise AssertionError(f"it did not print {word!r} in {seconds} s")
