"""The follower of an application while it runs at a standby."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, SiteName, StageName
from zerotail.ports import End, Standing
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.transaction import Session
from zerotail.running.parts import StagePart
from zerotail.running.report import Say
from zerotail.spark.follower_query import Progress, follow_task, start_follower_query

_ROLE: Final = "follower"
_UNKNOWN: Final = {"missing": None, "lag_seconds": None}


class RunningFollower:
    """Follows all partitions of all stages in one query."""

    def __init__(
        self,
        spark: SparkSession,
        configuration: Configuration,
        site: SiteName,
        stages: tuple[StagePart, ...],
        say: Say,
        *,
        shadow: bool = False,
    ) -> None:
        self.site = site
        self._spark = spark
        self._dsn = configuration.sites[site].database.dsn.reveal()
        self._stages = stages
        self._say = say
        self._task = follow_task(configuration, site, stages, shadow=shadow)
        self._database = Session(self._dsn, "zerotail follower")
        self._missing: dict[tuple[StageName, PartitionNumber], int | None] = {}
        self._waits: set[StageName] = set()
        self._differences: dict[tuple[StageName, PartitionNumber], str] = {}
        """The first one of each: another worker begins behind it, and must not be the one that is heard."""

    @property
    def has_all(self) -> bool:
        """Whether every topic held all of its journal when it was looked at last."""
        return bool(self._missing) and all(missing == 0 for missing in list(self._missing.values()))

    @property
    def name(self) -> str:
        """Its name as a part."""
        return f"follower of {', '.join(part.name for part in self._stages)}"

    @property
    def waits_for_turn(self) -> bool:
        """Never: this is the work of a standby."""
        return False

    def start(self, checkpoint: str) -> StreamingQuery:
        """Follow from wherever the topics end."""
        return start_follower_query(self._spark, self._dsn, self._task, checkpoint, self._note)

    def observe(self) -> End | bool:
        """It ends when its database is no standby any more."""
        return self.reason_to_end() or False

    def reason_to_end(self) -> End | None:
        """The same, after its query failed."""
        standing = self._database.read(read_standing)
        return End.NOT_ACTIVE if isinstance(standing, Standing) and standing.timeline is not None else None

    def waits(self, reason: str) -> None:
        """Say that nothing is followed, and why."""
        for part in self._stages:
            self._say(_ROLE, part.name, None, "waiting", reason)
            self._waits.add(part.name)
        for stage, partition in list(self._missing):
            self._say(_ROLE, stage, partition, "waiting", reason, _UNKNOWN)

    def close(self) -> None:
        """Give back the session."""
        self._database.close()

    def _note(self, stage: StageName, partition: PartitionNumber, progress: Progress) -> None:
        followed, shadowed = progress.followed, progress.shadowed
        self._missing[stage, partition] = followed.missing
        if stage in self._waits:
            self._waits.remove(stage)
            self._say(_ROLE, stage, None, "working")
        seconds = progress.lag_seconds
        lag = {"missing": followed.missing, "lag_seconds": None if seconds is None else round(seconds, 3)}
        if shadowed is not None and shadowed.difference is not None:
            self._differences.setdefault((stage, partition), shadowed.difference)
        difference = self._differences.get((stage, partition))
        if difference is not None:
            self._say(_ROLE, stage, partition, "stopped", difference, lag, appended=followed.appended)
        else:
            doing: Final = "waiting" if followed.waits_for else "working"
            self._say(_ROLE, stage, partition, doing, followed.waits_for, lag, appended=followed.appended)
