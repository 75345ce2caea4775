"""What this process says of itself, for `zerotail status`: said from any thread, written in the background.

1. `say` remembers and returns: whoever works is never held up by a report, and never sees an error of one.
2. A thread with a session of its own writes what has changed, at most every half second, and everything every two
   seconds as a sign of life. While the database is away nothing piles up: the newest word is tried again.
3. Counters are sums since this object was made.
4. A standby takes no reports: they go to whichever of the two databases does.
5. `close` gives the last word a short time to be written, then leaves.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from types import MappingProxyType
from typing import Protocol, Self

from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.handler import printable
from zerotail.ports import Indefinite, Refused, Unreachable
from zerotail.postgres.process import Doing, Report, Role, write_reports
from zerotail.postgres.transaction import Session

_SHORTEST_SECONDS = 0.5
_SIGN_OF_LIFE_SECONDS = 2.0
_PATIENCE_SECONDS = 2.0
_LAST_WORD_SECONDS = 1.0

Measures = Mapping[str, float | None]
"""Figures by name; None is one that nobody knows."""
_NOTHING: Measures = MappingProxyType({})

Key = tuple[Role, str, PartitionNumber | None]
Tell = Callable[[str], None]
"""One line for whoever started the process."""


class Say(Protocol):
    """Where a process says what it does, and why it waits or has stopped."""

    def __call__(
        self,
        role: Role,
        name: str,
        partition: PartitionNumber | None,
        doing: Doing,
        reason: str = "",
        measures: Measures = _NOTHING,
        **counters: int,
    ) -> None: ...


@dataclass(slots=True)
class _Word:
    """The newest word on one key."""

    doing: Doing
    reason: str
    since: float
    counters: Counter[str] = field(default_factory=Counter)
    measures: Measures = field(default_factory=dict)


class Reporter:
    """The reports of one process at one site."""

    def __init__(self, site: SiteName, *dsns: str) -> None:
        self._site = site
        self._sessions = deque(
            Session(dsn, "zerotail report", patience_seconds=_PATIENCE_SECONDS, connect_seconds=_PATIENCE_SECONDS)
            for dsn in dsns
        )
        self._lock = Lock()
        self._words: dict[Key, _Word] = {}
        self._changed: dict[Key, None] = {}
        self._closing = Event()
        self._writer = Thread(target=self._keep_writing, name="zerotail report", daemon=True)
        self._writer.start()

    def say(
        self,
        role: Role,
        name: str,
        partition: PartitionNumber | None,
        doing: Doing,
        reason: str = "",
        measures: Measures = _NOTHING,
        **counters: int,
    ) -> None:
        """What is done now, and why it waits or has stopped.

        `counters` are added to the sums so far, `measures` stand for themselves.
        """
        key = (role, name, partition)
        with self._lock:
            word = self._words.get(key)
            if word is None:
                word = self._words[key] = _Word(doing, reason, time.monotonic())
            elif (word.doing, word.reason) != (doing, reason):
                word.doing, word.reason, word.since = doing, reason, time.monotonic()
            elif not any(counters.values()) and measures == word.measures:
                return  # nothing new: the sign of life says it again
            word.counters.update(counters)
            word.measures = measures
            self._changed[key] = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write the last word, if the database takes it at once; nothing is written after that."""
        self._closing.set()
        self._writer.join(_LAST_WORD_SECONDS)

    def _keep_writing(self) -> None:
        written_all_at = time.monotonic()
        while not self._closing.wait(_SHORTEST_SECONDS):
            due = time.monotonic() - written_all_at >= _SIGN_OF_LIFE_SECONDS
            if self._write(everything=due) and due:
                written_all_at = time.monotonic()
        self._write(everything=True)
        for session in self._sessions:
            session.close()

    def _write(self, *, everything: bool) -> bool:
        """Whether the database took it; what it did not take comes with the next sign of life."""
        with self._lock:
            reports = [self._report(key) for key in (self._words if everything else self._changed)]
            self._changed.clear()
        if not reports:
            return True
        try:
            outcome = self._sessions[0].write(lambda connection: write_reports(connection, reports))
        except Exception:  # noqa: BLE001 - such as tables that are not there yet: no report is worth the work
            self._sessions[0].close()
            outcome = Unreachable()
        if isinstance(outcome, Unreachable | Indefinite | Refused):
            self._sessions.rotate(-1)
            return False
        return True

    def _report(self, key: Key) -> Report:
        role, name, partition = key
        word = self._words[key]
        for_seconds = time.monotonic() - word.since
        process = (os.getpid(), socket.gethostname())
        return Report(
            self._site,
            role,
            name,
            partition,
            *process,
            word.doing,
            printable(word.reason),  # it may be somebody else's text, and one that cannot be stored would silence all
            for_seconds,
            {**word.counters, **word.measures},
        )
