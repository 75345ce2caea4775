"""Commands of the configuration: fence, promote, stop and attach, as an operator's own programs.

A command is started without a shell, with nothing to read, and has its time; what it printed last goes into the message
when it fails.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline

COMMAND_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    ok: bool
    said: str
    """Why it failed, in one line."""


def run_command(words: Sequence[str], site: SiteName, other: SiteName, deadline: Deadline) -> Ended:
    """Run a command of the configuration, with the names of the sites put in."""
    filled = [word.replace("{site}", site).replace("{other}", other) for word in words]
    try:
        done = subprocess.run(
            filled,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline.seconds_left,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(False, f"{filled[0]} did not end in time")
    except OSError as error:
        return Ended(False, f"{filled[0]} cannot be started: {error.strerror}")
    if done.returncode == 0:
        return Ended(True, "")
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return Ended(False, f"{filled[0]} exited with {done.returncode}: {lines[0] if lines else 'it said nothing'}")
