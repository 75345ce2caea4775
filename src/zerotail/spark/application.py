"""One Spark application of a site: its producers and its stages, kept running.

1. Every part is one streaming query. A query that fails for a passing reason (Kafka away, a log that was replaced or
   cut, a database that restarts) is started again, a little later each time, from what the database says.
2. A part that must not go on here ends the application, with its own exit code: another instance is at work, this site
   is not the active one, an invariant does not hold.
3. A partition that stopped at a record is left out until somebody has decided about it; the others go on.
4. A stage that owes the outside too much takes nothing more until that has gone down.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import Protocol

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.config import Configuration
from zerotail.core.identity import SiteName
from zerotail.errors import Unavailable, Unfinished, ZerotailError
from zerotail.ports import End
from zerotail.running.emitter import EXIT_CODES
from zerotail.running.parts import Parts
from zerotail.running.report import Say, Tell
from zerotail.spark.session import start_session

_LOOK_SECONDS = 0.1
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
_SOUND_SECONDS = 10.0
"""A query that ran so long starts its next pauses from the beginning."""
_OURS = ("zerotail.", "org.apache.kafka.")
_CAUSE = "Caused by: "


class RunningPart(Protocol):
    """A part of the application while it runs."""

    @property
    def name(self) -> str:
        """What it is called in lines and reports."""
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


class Application:
    """The queries of one site."""

    def __init__(self, configuration: Configuration, tell: Tell) -> None:
        self._configuration = configuration
        self._tell = tell
        self._stop = Event()
        self._folder = Path(tempfile.mkdtemp(prefix="zerotail-"))

    @property
    def stopping(self) -> Event:
        """Set when it is asked to end."""
        return self._stop

    def stop(self) -> None:
        """Let every query end."""
        self._stop.set()

    def run(
        self,
        name: str,
        make_parts: Callable[[SparkSession], list[RunningPart]],
        wait: Callable[[Event], bool] | None = None,
    ) -> int:
        """Keep the parts running until stopped or until one of them must end; the exit code.

        With `wait` the session is made and warmed up first; the parts begin when it answers True.
        """
        spark = open_session(self._configuration, name)
        try:
            if wait is not None:
                warm_up(spark)
                self._tell(f"waiting at {name}: warm, until this site is the active one")
                if not wait(self._stop):
                    return 0
            parts = [_Kept(part, self._folder, self._tell) for part in make_parts(spark)]
            try:
                return self._keep(parts)
            finally:
                for part in parts:
                    part.end()
        except Py4JError as error:
            raise Unfinished(
                f"Spark is gone: {str(error).splitlines()[0]}",
                code="ZT801",
                why="Nothing is lost: the heads say where to go on.",
                tries=["zerotail run …    # again"],
            ) from error
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            spark.stop()

    def _keep(self, parts: list[_Kept]) -> int:
        while not self._stop.is_set():
            for part in parts:
                ended = part.look()
                if ended is not None:
                    return self._ended(part.name, ended)
            self._stop.wait(_LOOK_SECONDS)
        return 0

    def _ended(self, name: str, ended: End | ZerotailError) -> int:
        if isinstance(ended, End):
            self._tell(f"ending: {name}: {ended.value}")
            return EXIT_CODES.get(ended, Unfinished.exit_code)
        raise ended


class _Kept:
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

    @property
    def name(self) -> str:
        return self._part.name

    def look(self) -> End | ZerotailError | None:
        """Start the query, or start it again; why the part must end, if it must."""
        if self._query is not None and self._query.isActive:
            seen = self._part.observe()
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
            self._tell(f"running {self.name}")
        return None

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
                self._query.stop()
            except (PySparkException, Py4JError):
                return  # it is told at the next look
            finally:
                self._query = None


def open_session(configuration: Configuration, name: str) -> SparkSession:
    """The session that a configuration asks for."""
    spark = configuration.spark
    settings = {key: value.reveal() for key, value in spark.settings.items()}
    return start_session(f"zerotail {configuration.name} {name}", spark.master, settings)


def warm_up(spark: SparkSession) -> None:
    """Have workers started and code loaded before it counts: the first job of a cold session takes seconds."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import zerotail.spark.producer_query
        import zerotail.spark.stage_query  # noqa: F401

        yield from batches

    for _ in range(2):
        spark.range(1000).repartition(2).mapInArrow(work, "id bigint").collect()


def run_parts(
    configuration: Configuration,
    site: SiteName,
    parts: Parts,
    say: Say,
    application: Application,
    wait: Callable[[Event], bool] | None = None,
) -> int:
    """Run producers and stages at a site until the end; the exit code."""
    from zerotail.spark.running_producers import RunningProducers
    from zerotail.spark.running_stage import RunningStage

    def make_parts(spark: SparkSession) -> list[RunningPart]:
        running: list[RunningPart] = [
            RunningStage(spark, configuration, site, part, say, application.stopping) for part in parts.stages
        ]
        if parts.producers:
            running.append(RunningProducers(spark, configuration, site, parts.producers, say))
        return running

    return application.run(site, make_parts, wait)


def first_cause(error: Exception | None) -> str:
    """What a failed query says, without Spark's frames around it: the innermost cause, in one line."""
    if error is None:
        return "it ended without a reason"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(_OURS)]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (ours[-1:] or causes[-1:] or thrown[-1:] or lines or ["no reason given"])[0][:300]
