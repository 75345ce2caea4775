"""All processes of a site under one: a Spark application for producers and stages, and an emitter.

A process that dies is started again; one that ends because another instance is at work, because this site is not the
active one, or because an invariant does not hold, ends the others, too. At a standby the end of a turn is no end: the
child starts again and waits for the next one. Children get SIGTERM when this process is gone,
however it went. What a child leaves behind ends with it (`orphans.py`).
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from threading import Event
from types import MappingProxyType

from zerotail.running.orphans import Orphans
from zerotail.running.report import Tell

_LOOK_SECONDS = 0.1
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 5.0
_SOUND_SECONDS = 10.0
_END_SECONDS = 20.0
_FINAL = frozenset({0, 2, 3, 6, 7, 70})
"""Exit codes after which starting again would not help; everything else is a crash or a neighbour that is away."""
_NONE: Mapping[str, Set[int]] = MappingProxyType({})
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(slots=True)
class _Child:
    name: str
    command: Sequence[str]
    final: Set[int]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause_seconds: float = _FIRST_PAUSE_SECONDS
    not_before: float = field(default=0.0)


class Supervisor:
    """Keeps commands running."""

    def __init__(
        self, commands: Mapping[str, Sequence[str]], tell: Tell, *, ends_of_turns: Mapping[str, Set[int]] = _NONE
    ) -> None:
        """With `ends_of_turns`, by name: the exit codes that say no more than that its turn is over."""
        self._children = [
            _Child(name, command, _FINAL - ends_of_turns.get(name, frozenset())) for name, command in commands.items()
        ]
        self._tell = tell
        self._orphans = Orphans()
        self._stop = Event()

    def stop(self) -> None:
        """End every child."""
        self._stop.set()

    def run(self) -> int:
        """Until stopped, or until a child has ended for good; its exit code, else 0."""
        try:
            while not self._stop.is_set():
                for child in self._children:
                    ended = self._look(child)
                    if ended is not None:
                        return ended
                self._orphans.look()
                self._stop.wait(_LOOK_SECONDS)
            return 0
        finally:
            self._end_all()

    def _look(self, child: _Child) -> int | None:
        if child.process is not None:
            code = child.process.poll()
            if code is None:
                return None
            child.process = None
            self._orphans.end(self._running())
            if code in child.final:
                self._tell(f"{child.name} has ended with exit code {code}")
                return code
            self._plan_again(child, code)
        if time.monotonic() >= child.not_before:
            child.process = subprocess.Popen(
                child.command,
                stdin=subprocess.DEVNULL,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has no other thread
            )
            child.started = time.monotonic()
        return None

    def _running(self) -> set[int]:
        return {child.process.pid for child in self._children if child.process is not None}

    def _plan_again(self, child: _Child, code: int) -> None:
        now = time.monotonic()
        if now - child.started > _SOUND_SECONDS:
            child.pause_seconds = _FIRST_PAUSE_SECONDS
        child.not_before = now + child.pause_seconds
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._tell(f"{child.name} {how}; it starts again in {child.pause_seconds:g} s")
        child.pause_seconds = min(2 * child.pause_seconds, _LONGEST_PAUSE_SECONDS)

    def _end_all(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._orphans.wait(set())


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
