"""Commands of the configuration: fence, promote, stop and attach, as an operator's own programs.

A command is started without a shell, with nothing to read, and has its time, after which it is killed with everything
that it has started; what it printed first goes into the message when it fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline

COMMAND_SECONDS = 300.0
ATTACH_SECONDS = 12 * 3600.0
"""It copies a database."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    ok: bool
    said: str
    """Why it failed, in one line."""


def run_command(words: Sequence[str], site: SiteName, other: SiteName, deadline: Deadline) -> Ended:
    """Run a command of the configuration, with the names of the sites put in."""
    filled = [word.replace("{site}", site).replace("{other}", other) for word in words]
    # Files, not pipes: a server that the command has started keeps them open, and is not waited for.
    with TemporaryFile() as out, TemporaryFile() as err:
        try:
            process = subprocess.Popen(filled, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        except OSError as error:
            return Ended(False, f"{filled[0]} cannot be started: {error.strerror}")
        try:
            code = process.wait(deadline.seconds_left)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Ended(False, f"{filled[0]} did not end in time")
        except BaseException:
            _kill(process)
            raise
        return Ended(True, "") if code == 0 else Ended(False, f"{filled[0]} exited with {code}: {_said(err, out)}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With everything that it has started in its own session: half a copy must not go on beside the next one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _said(*files: IO[bytes]) -> str:
    """The first line of the first of them that has one."""
    for file in files:
        file.seek(0)
        lines = file.read().decode(errors="replace").strip().splitlines()
        if lines:
            return lines[0]
    return "it said nothing"
