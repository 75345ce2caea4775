"""What Java and workers say is not part of a command's answer, unless the start fails."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import IO

import pytest

from zerotail.errors import Unavailable
from zerotail.spark.session import _said_into

pytestmark = pytest.mark.fast


def start() -> subprocess.Popen[bytes]:
    """A process that says something, and more when it is told to end."""
    speaking = (
        "import sys; print('noise', file=sys.stderr, flush=True); sys.stdin.read(); print('more', file=sys.stderr)"
    )
    return subprocess.Popen([sys.executable, "-c", speaking], stdin=subprocess.PIPE)


def end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.communicate(timeout=30)


def test_what_is_started_inside_says_it_elsewhere_from_then_on(capfd: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryFile() as said:
        with _said_into(said):
            process = start()
        sys.stderr.write("ours\n")
        end(process)
        said.seek(0)
        assert said.read().decode().split() == ["noise", "more"]
    assert capfd.readouterr().err == "ours\n"


def test_a_start_that_fails_shows_what_was_said(capfd: pytest.CaptureFixture[str]) -> None:
    def fail(said: IO[bytes]) -> None:
        with _said_into(said):
            end(start())
            raise Unavailable("no session")

    with tempfile.TemporaryFile() as said, pytest.raises(Unavailable):
        fail(said)
    assert capfd.readouterr().err.split() == ["noise", "more"]
