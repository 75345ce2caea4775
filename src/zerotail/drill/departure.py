"""Processes of a site that was taken over: who was at work there, when it was refused, and when it was gone.

1. Who is at work is known by its process id, taken when the old site goes on. The kernel says when each of them is
   gone (a pidfd, which no later process of the same number can answer for).
2. When they were refused is what they say themselves, each line with its time: by the receiver, which has met a newer
   sender, or by their own database, which is in another epoch or has another claim.
3. A process has its time from its own first refusal. One that was not refused itself (it is ended by the one that
   started it, or its JVM goes with it) has it from the first refusal of any of them.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

from zerotail.deadline import Deadline
from zerotail.drill.running import ALL, EMITTER, FLOW, JAVA, Running, part_of
from zerotail.ports import End

END_SECONDS = 5.0
"""Processes that were told that they are old end within this time."""
_REFUSAL_SECONDS = 60.0
"""So long is waited for the first refusal."""
_LOOK_SECONDS = 0.05
_OLD = "|".join(re.escape(one.value) for one in (End.SUPERSEDED, End.NOT_ACTIVE))
_REFUSED = re.compile(rf"^(\S+) ending: ([^:\n]+): .*(?:{_OLD}|is not the active one)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AtWork:
    """A process that was at work."""

    part: str
    pid: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A part said that it is old; in seconds since 1970."""

    part: str
    at: float


@dataclass(frozen=True, slots=True)
class Told:
    """Whether they were gone in time, and what was seen."""

    in_time: bool
    evidence: str


class Departure:
    """Watches the processes of one start until they are gone, from a thread of its own."""

    def __init__(self, running: Running) -> None:
        self._log = running.log
        self._heard = running.log.stat().st_size
        self._gone: dict[AtWork, float] = {}
        self._watched: dict[int, AtWork] = {}
        for pid in running.members():
            part = part_of(pid)
            with suppress(ProcessLookupError):
                if part is not None:
                    self._watched[os.pidfd_open(pid)] = AtWork(part, pid)
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="departure", daemon=True)
        self._thread.start()

    @property
    def at_work(self) -> list[AtWork]:
        """Who was at work when this began."""
        return sorted(self._watched.values(), key=lambda one: (ALL.index(one.part), one.pid))

    @property
    def left(self) -> list[AtWork]:
        """Who of them is still there."""
        return [one for one in self.at_work if one not in self._gone]

    def wait(self, parts: Collection[str] = ALL, since: float = 0.0) -> Told:
        """Return when these parts are gone, or are late; refusals count that were said after `since`."""
        wanted = [one for one in self.at_work if one.part in parts]
        deadline = Deadline.after(_REFUSAL_SECONDS)
        while True:
            refusals = [one for one in read_refusals(self._log, self._heard) if one.at >= since]
            told = judge_departure(wanted, refusals, self._gone, time.time())
            if told is not None or deadline.passed:
                return told or Told(False, "none of them was refused")
            time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Watch no longer."""
        self._stop.set()
        self._thread.join()
        for handle in self._watched:
            os.close(handle)
        self._watched.clear()

    def _watch(self) -> None:
        waiting = select.poll()
        for handle in self._watched:
            waiting.register(handle, select.POLLIN)
        left = len(self._watched)
        while left and not self._stop.is_set():
            for handle, _ in waiting.poll(_LOOK_SECONDS * 1000):
                self._gone[self._watched[handle]] = time.time()
                waiting.unregister(handle)
                left -= 1


def judge_departure(
    wanted: Sequence[AtWork], refusals: Sequence[Refusal], gone: dict[AtWork, float], now: float
) -> Told | None:
    """Whether each was gone in time after it was refused; None while nobody can know yet."""
    if not wanted:
        return Told(False, "none of them was at work")
    if not refusals:
        return None
    lines, in_time = [], True
    for one in wanted:
        refused_at = _refused_at(one, refusals)
        took = gone.get(one, now) - refused_at
        if one not in gone and took <= END_SECONDS:
            return None
        in_time &= one in gone and took <= END_SECONDS
        how = f"gone {took:.2f} s after the refusal" if one in gone else f"still there {took:.2f} s after the refusal"
        lines.append(f"{one.part} (pid {one.pid}) {how}")
    return Told(in_time, "; ".join(lines))


def _refused_at(one: AtWork, refusals: Sequence[Refusal]) -> float:
    """When it was refused: a JVM with the flow to which it belongs, who was not refused itself with the first."""
    part = FLOW if one.part == JAVA else one.part
    own = [refusal.at for refusal in refusals if refusal.part == part]
    return min(own or [refusal.at for refusal in refusals])


def read_refusals(log: Path, behind: int = 0) -> list[Refusal]:
    """Which parts have said that they are old, and when."""
    with log.open("rb") as file:
        file.seek(behind)
        said = file.read().decode(errors="replace")
    found = []
    for told_at, name in _REFUSED.findall(said):
        with suppress(ValueError):  # lines of several processes can run into each other
            # A lane is called by its channel and partition, a part of the flow by its kind and name.
            found.append(Refusal(EMITTER if "/" in name else FLOW, datetime.fromisoformat(told_at).timestamp()))
    return found
