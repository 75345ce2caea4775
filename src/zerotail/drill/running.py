"""One `zerotail run` of a drill: a session of processes with a log of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, Signals

from zerotail.deadline import Deadline
from zerotail.drill.sender import HISTORY_VARIABLE
from zerotail.errors import Unavailable
from zerotail.lab.process import marked_environment, session_members
from zerotail.private import make_folder, open_file

EMITTER, FLOW, JAVA = "emitter", "flow", "java"
ALL = (EMITTER, FLOW, JAVA)
"""The processes of a site."""
_LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Running:
    """The processes of one start."""

    site: str
    process: subprocess.Popen[bytes]
    log: Path
    standby: bool
    """Whether they wait, warm, for their turn, again after each one."""
    _heard: int = 0

    @classmethod
    def start(
        cls, lab: Path, site: str, config: Path, history: Path, *words: str, more: Mapping[str, str] | None = None
    ) -> Running:
        """Start `zerotail run WORDS` at a site; senders write their releases into `history`.

        They carry the mark of the lab, so that whoever takes it down finds them, too; and what they had in scratch
        files when they were killed goes with it. `more` goes into their environment.
        """
        scratch = lab / "scratch"
        make_folder(scratch)
        number = len(list(config.parent.glob("run-*.log")))
        log = config.with_name(f"run-{number}.log")
        command = [sys.executable, "-m", "zerotail", "run", *words, "--site", site, "--config", str(config)]
        with open_file(log, "wb") as file:
            process = subprocess.Popen(
                command,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=marked_environment(
                    lab,
                    f"{site}.zerotail",
                    {HISTORY_VARIABLE: str(history), "TMPDIR": str(scratch), **(more or {})},
                ),
            )
        return cls(site, process, log, standby="--standby" in words)

    @property
    def ended(self) -> bool:
        """Whether the first of the processes is gone."""
        return self.process.poll() is not None

    def said(self) -> str:
        """Everything they have said so far, in this role."""
        return self.log.read_bytes()[self._heard :].decode(errors="replace")

    def change_role(self) -> None:
        """What they have said so far says nothing about what they are from now on."""
        self._heard = self.log.stat().st_size

    def says_within(self, seconds: float, *words: str) -> bool:
        """Whether they say all of that in time; False as soon as they have ended without it."""
        deadline = Deadline.after(seconds)
        while True:
            ended, said = self.ended, self.said()
            if all(word in said for word in words):
                return True
            if ended or deadline.passed:
                return False
            time.sleep(_LOOK_SECONDS)

    def wait_until_says(self, seconds: float, *words: str) -> None:
        """Return when they have said so; `Unavailable` with their last words otherwise."""
        if not self.says_within(seconds, *words):
            said = " / ".join(self.said().strip().splitlines()[-3:])
            raise Unavailable(f"the processes of {self.site} did not say “{' and '.join(words)}” but: {said[-400:]}")

    def members(self) -> list[int]:
        """The process ids of all of them that live."""
        return session_members(self.process.pid)

    def signal(self, number: Signals) -> int:
        """Send a signal to every one of them; how many there are."""
        return self._send(self.members(), number)

    def signal_flow(self, number: Signals) -> int:
        """Send a signal to those that run producers and stages, and not to the emitter; how many there are."""
        spared = {self.process.pid, *(pid for pid in self.members() if part_of(pid) == EMITTER)}
        return self._send([pid for pid in self.members() if pid not in spared], number)

    def _send(self, members: list[int], number: Signals) -> int:
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(members)

    def end(self) -> None:
        """End whatever of them is left."""
        self.signal(SIGKILL)
        self.process.wait()


def part_of(pid: int) -> str | None:
    """What a process is, by its command line."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if Path(os.fsdecode(words[0])).name == JAVA:
            return JAVA
        return next((part for part in (EMITTER, FLOW) if part.encode() in words), None)
    return None
