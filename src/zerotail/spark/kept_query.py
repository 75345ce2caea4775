"""A streaming query that is kept running: started, started again a little later each time it fails, ended.

A query that fails for a passing reason (Kafka away, a log that was replaced or cut, a database that restarts) begins
again from what the database says. Whether the reason passes is for the part itself to say.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.deadline import Deadline
from zerotail.errors import Unavailable, ZerotailError
from zerotail.ports import End
from zerotail.running.report import Tell

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
_SOUND_SECONDS = 10.0
"""A query that ran so long starts its next pauses from the beginning."""
_BATCH_SECONDS, _LOOK_SECONDS = 0.5, 0.01
_OURS = ("zerotail.", "org.apache.kafka.")
_CAUSE = "Caused by: "


class RunningPart(Protocol):
    """A part of the application while it runs."""

    @property
    def name(self) -> str:
        """What it is called in lines and reports."""
        ...

    @property
    def waits_for_turn(self) -> bool:
        """Whether its query runs and does nothing yet, at a standby."""
        ...

    def start(self, checkpoint: str) -> StreamingQuery:
        """Begin from what the database says."""
        ...

    def observe(self) -> End | bool:
        """Whether something changed that only a new start takes up; why it must not go on here, if it must not."""
        ...

    def reason_to_end(self) -> End | ZerotailError | None:
        """Why it must not go on here, after its query failed; None when a new start may help."""
        ...

    def waits(self, reason: str) -> None:
        """Say that it waits, and why."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class KeptQuery:
    """A part, its query, and when to try again."""

    def __init__(self, part: RunningPart, folder: Path, tell: Tell) -> None:
        self._part = part
        self._folder = folder
        self._tell = tell
        self._query: StreamingQuery | None = None
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._not_before = 0.0
        self._started = 0.0
        self._told = ""
        self._told_running = False

    @property
    def name(self) -> str:
        return self._part.name

    def look(self) -> End | ZerotailError | None:
        """Start the query, or start it again; why the part must end, if it must."""
        if self._query is not None and self._query.isActive:
            seen = self._part.observe()
            self._tell_running()
            if isinstance(seen, End):
                return seen
            if seen:
                self._end_query()
            return None
        if self._query is not None:
            problem = first_cause(self._query.exception())
            self._query = None
            ended = self._part.reason_to_end()
            if ended is not None:
                return ended
            self._wait(problem)
        if time.monotonic() < self._not_before:
            return None
        return self._start()

    def end(self) -> None:
        """Stop the query and give everything back."""
        self._end_query()
        self._part.close()

    def _start(self) -> End | ZerotailError | None:
        # On this machine, whichever file system a cluster takes for a path without a scheme.
        checkpoint = Path(tempfile.mkdtemp(dir=self._folder)).as_uri()
        try:
            self._query = self._part.start(checkpoint)
        except Unavailable as error:
            self._wait(error.message)
        except ZerotailError as error:
            return error
        else:
            self._started = time.monotonic()
            self._told_running = False
            self._tell_running()
        return None

    def _tell_running(self) -> None:
        if not self._told_running and not self._part.waits_for_turn:
            self._told_running = True
            self._tell(f"running {self.name}")

    def _wait(self, reason: str) -> None:
        now = time.monotonic()
        if now - self._started > _SOUND_SECONDS:
            self._pause_seconds, self._told = _FIRST_PAUSE_SECONDS, ""
        self._not_before = now + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
        self._part.waits(reason)
        if reason != self._told:
            self._told = reason
            self._tell(f"waiting {self.name}: {reason}")

    def _end_query(self) -> None:
        if self._query is not None:
            try:
                _let_batch_end(self._query)
                self._query.stop()
            except (PySparkException, Py4JError, ConnectionError):
                return  # it is told at the next look
            finally:
                self._query = None


def _let_batch_end(query: StreamingQuery) -> None:
    """Wait a moment for the batch at work. Stopped in the middle of one, Spark fills the log with a thousand lines:
    it overflows the stack while it asks whether the error was an interruption.
    """
    deadline = Deadline.after(_BATCH_SECONDS)
    while query.isActive and query.status["isTriggerActive"] and not deadline.passed:
        time.sleep(_LOOK_SECONDS)


def first_cause(error: Exception | None) -> str:
    """What a failed query says, without Spark's frames around it: the innermost cause, in one line."""
    if error is None:
        return "it ended without a reason"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(_OURS)]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (ours[-1:] or causes[-1:] or thrown[-1:] or lines or ["no reason given"])[0][:300]
