"""One Spark application of a site: its producers and its stages, kept running.

1. Every part is one streaming query, kept running (`kept_query.py`).
2. A part that must not go on here ends the application, with its own exit code: another instance is at work, this site
   is not the active one, an invariant does not hold.
3. A partition that stopped at a record is left out until somebody has decided about it; the others go on.
4. A stage that owes the outside too much takes nothing more until that has gone down.
5. At a standby the parts run as well, and wait for their turn: their queries, clients and workers are warm when it
   comes. Meanwhile the site follows (`following.py`).
6. The end does not wait for Spark (`java.py`): an application that is told to stop has two seconds for what it has in
   its hands, one that is told that it is old has none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zerotail.config import Configuration
from zerotail.core.identity import SiteName
from zerotail.errors import Unfinished, ZerotailError
from zerotail.ports import End
from zerotail.running.emitter import EXIT_CODES
from zerotail.running.parts import Parts
from zerotail.running.prepare import NotActiveError
from zerotail.running.report import Say, Tell
from zerotail.spark.following import Following
from zerotail.spark.java import Java
from zerotail.spark.kept_query import KeptQuery, RunningPart
from zerotail.spark.running_follower import RunningFollower
from zerotail.spark.running_producers import RunningProducers
from zerotail.spark.running_stage import RunningStage
from zerotail.spark.session import start_session

_LOOK_SECONDS = 0.1
_BATCHES_SECONDS = 2.0


class Application:
    """The queries of one site."""

    def __init__(self, configuration: Configuration, tell: Tell) -> None:
        self._configuration = configuration
        self._tell = tell
        self._stop = Event()

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
        make_follower: Callable[[SparkSession], RunningFollower] | None = None,
    ) -> int:
        """Keep the parts running until stopped or until one of them must end; the exit code.

        With a follower the site is a standby: the parts wait for their turn, and it works until that has come.
        """
        with TemporaryDirectory(prefix="zerotail-", ignore_cleanup_errors=True) as folder:
            return self._run(open_session(self._configuration, name), Path(folder), make_parts, make_follower)

    def _run(
        self,
        spark: SparkSession,
        folder: Path,
        make_parts: Callable[[SparkSession], list[RunningPart]],
        make_follower: Callable[[SparkSession], RunningFollower] | None,
    ) -> int:
        java, following = Java(spark), None
        try:
            with ExitStack() as last:  # all of it, whatever goes wrong: the JVM ends in any case
                last.callback(java.end)
                try:
                    if make_follower is not None:
                        following = Following(spark, make_follower(spark), folder, self._tell)
                        last.callback(following.close)
                    parts = [KeptQuery(part, folder, self._tell) for part in make_parts(spark)]
                    for part in reversed(parts):
                        last.callback(part.end)
                    return self._keep(parts, following, java)
                finally:
                    java.end_within(_BATCHES_SECONDS)
        except (Py4JError, ConnectionError) as error:
            raise _spark_is_gone(error) from error

    def _keep(self, parts: list[KeptQuery], following: Following | None, java: Java) -> int:
        while not self._stop.is_set():
            for part in parts:
                ended = part.look()
                if ended is not None:
                    return self._ended(part.name, ended, java)
            if following is not None:
                # Behind the parts: Spark gives a Python process ten seconds to come up, and each of them starts some.
                following.begin()
            self._stop.wait(_LOOK_SECONDS)
        return 0

    def _ended(self, name: str, ended: End | ZerotailError, java: Java) -> int:
        self._tell(f"ending: {name}: {ended.value if isinstance(ended, End) else ended.message}")
        if isinstance(ended, End | NotActiveError):
            java.end_within(0)  # this application is old, and so is everything in its hands
        if isinstance(ended, End):
            return EXIT_CODES.get(ended, Unfinished.exit_code)
        raise ended


def open_session(configuration: Configuration, name: str) -> SparkSession:
    """The session that a configuration asks for."""
    spark = configuration.spark
    settings = {key: value.reveal() for key, value in spark.settings.items()}
    try:
        return start_session(f"zerotail {configuration.name} {name}", spark.master, settings)
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise _spark_is_gone(error) from error


def _spark_is_gone(error: Exception) -> Unfinished:
    """Its JVM was killed, or never came up: an end that a new start may heal."""
    return Unfinished(
        f"Spark is gone: {str(error).splitlines()[0]}",
        code="ZT801",
        why="Nothing is lost: the heads say where to go on.",
        tries=["zerotail run …    # again"],
    )


def run_parts(
    configuration: Configuration,
    site: SiteName,
    parts: Parts,
    say: Say,
    application: Application,
    *,
    standby: bool = False,
) -> int:
    """Run producers and stages at a site until the end; the exit code. At a standby they wait for their turn."""

    def make_parts(spark: SparkSession) -> list[RunningPart]:
        running: list[RunningPart] = [
            RunningStage(
                spark, configuration, site, part, say, application.stopping, standby=standby, decides=number == 0
            )
            for number, part in enumerate(parts.stages)
        ]
        if parts.producers:
            running.append(RunningProducers(spark, configuration, site, parts.producers, say, standby=standby))
        return running

    def make_follower(spark: SparkSession) -> RunningFollower:
        return RunningFollower(spark, configuration, site, parts.stages, say, shadow=configuration.takeover.shadow)

    return application.run(site, make_parts, make_follower if standby else None)


def follow_alone(
    configuration: Configuration, site: SiteName, parts: Parts, say: Say, application: Application, *, shadow: bool
) -> int:
    """Run nothing but the follower until the site is no standby any more; the exit code."""
    return application.run(
        site, lambda spark: [RunningFollower(spark, configuration, site, parts.stages, say, shadow=shadow)]
    )
