"""The follower beside the parts of a standby that wait for their turn, in a thread of its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zerotail.deadline import Deadline
from zerotail.errors import ZerotailError
from zerotail.running.prepare import FOLLOWED, WAITING
from zerotail.running.report import Tell
from zerotail.spark.kept_query import KeptQuery, first_cause
from zerotail.spark.running_follower import RunningFollower
from zerotail.spark.worker import warm_up

_LOOK_SECONDS = 0.1
_FIRST_PASS_SECONDS = 30.0
"""A site that came back after a long absence is warm before its topics are full: a takeover does not need them."""


class Following:
    """Follows until the site is no standby any more, or until it is closed."""

    def __init__(self, spark: SparkSession, follower: RunningFollower, folder: Path, tell: Tell) -> None:
        self._spark = spark
        self._follower = follower
        self._tell = tell
        self._kept = KeptQuery(follower, folder, tell)
        self._over = Event()
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Follow from now on; asking again changes nothing."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="follower", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Return when it has ended."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        with suppress(
            Py4JError, PySparkException, ConnectionError
        ):  # a task of it that fails costs some warmth, and nothing else
            warm_up(self._spark)
        try:
            self._follow()
        except (
            Py4JError,
            PySparkException,
            ConnectionError,
        ) as error:  # the session is gone: whoever runs the parts sees it, too
            self._tell(f"the follower has ended: {first_cause(error)}")

    def _follow(self) -> None:
        ended = self._kept.look()
        warm_by = Deadline.after(_FIRST_PASS_SECONDS)
        warm = followed = False
        while ended is None and not self._over.wait(_LOOK_SECONDS):
            ended = self._kept.look()
            if not followed and self._follower.has_all:
                followed = True
                self._tell(f"following at {self._follower.site}: {FOLLOWED}")
            if not warm and (followed or warm_by.passed):
                warm = True
                self._tell(f"waiting at {self._follower.site}: warm, {WAITING}")
        if isinstance(ended, ZerotailError):
            self._tell(f"the follower has ended: {ended.message}")
        self._kept.end()
