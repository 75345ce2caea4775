"""The producers of an application while they run."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.config import Configuration
from zerotail.core.epoch import works_at
from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName, TopicName
from zerotail.errors import ZerotailError
from zerotail.ports import End, Standing
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.transaction import Session
from zerotail.running.parts import ProducerPart, channels_to_itself
from zerotail.running.prepare import WAITING, adapter_settings, prepare_or_wait
from zerotail.running.report import Say
from zerotail.spark.door import Door
from zerotail.spark.producer_query import read_instructions, start_producer_query
from zerotail.spark.row_sender import Route

_ROLE: Final = "producer"


class RunningProducers:
    """Several producers in one query."""

    def __init__(
        self,
        spark: SparkSession,
        configuration: Configuration,
        site: SiteName,
        parts: tuple[ProducerPart, ...],
        say: Say,
        *,
        standby: bool = False,
    ) -> None:
        self._spark = spark
        self._configuration = configuration
        self._site = site
        self._parts = parts
        self._say = say
        self._settings = adapter_settings(configuration, site)
        self._database = Session(self._settings.dsn, "zerotail producers")
        self._names: dict[ProducerNumber, str] = {}
        self._waiting = standby
        self._door = Door(self._note, self._wait)

    @property
    def name(self) -> str:
        """Their names as one part."""
        return f"producers {', '.join(part.name for part in self._parts)}"

    @property
    def waits_for_turn(self) -> bool:
        """Whether this site has not been the active one yet, or nothing has been sent since."""
        return self._waiting

    def start(self, checkpoint: str) -> StreamingQuery:
        """Send from wherever the stages' vectors say."""
        self._door.close()
        self._door = Door(self._note, self._wait)
        prepared, live = prepare_or_wait(self._configuration, self._site, waiting=self._waiting)
        self._waiting &= not live
        self._names = {prepared.numbers[part.name]: part.name for part in self._parts}
        routes = {prepared.numbers[part.name]: _route(part, prepared.topics[part.topic]) for part in self._parts}
        resend_after = min(
            self._configuration.producers[part.name].resend_after.total_seconds() for part in self._parts
        )
        ranges = read_instructions(
            self._spark,
            self._settings.dsn,
            self._site,
            routes.values(),
            limit=self._configuration.spark.max_records_per_batch,
            resend_after_seconds=resend_after,
            owed={
                name: (int(stage.owed), sorted(channels_to_itself(self._configuration, name)))
                for name, stage in self._configuration.stages.items()
            },
            standby=self._waiting,
        )
        query = start_producer_query(ranges, self._settings.dsn, self._settings.kafka, routes, checkpoint, self._door)
        for part in self._parts:
            self._say(_ROLE, part.name, None, *(("waiting", WAITING) if self._waiting else ("working",)))
        return query

    def observe(self) -> bool:
        """Never: partitions that are added are taken up by the stream itself."""
        return False

    def reason_to_end(self) -> End | ZerotailError | None:
        """Why they must not go on here."""
        standing = self._database.read(read_standing)
        if not isinstance(standing, Standing):
            return None
        live = standing.live_at(self._site)
        self._waiting &= not live
        works = works_at(standing.lineage, self._site, standing.timeline)
        return None if works or self._waiting else End.NOT_ACTIVE

    def waits(self, reason: str) -> None:
        """Say that nothing is sent, and why."""
        for part in self._parts:
            self._say(_ROLE, part.name, None, "waiting", reason)

    def close(self) -> None:
        """Give back the session, and end what is tried apart from the others."""
        self._door.close()
        self._database.close()

    def _note(self, producer: ProducerNumber, partition: PartitionNumber, sent: int, stopped: str) -> None:
        self._waiting = False
        self._say(_ROLE, self._names[producer], partition, "stopped" if stopped else "working", stopped, sent=sent)

    def _wait(self, producer: ProducerNumber, partition: PartitionNumber, reason: str) -> None:
        self._say(_ROLE, self._names[producer], partition, "waiting", reason)


def _route(part: ProducerPart, topic: TopicName) -> Route:
    return Route(part.name, topic, part.transform, part.numbered, part.transform_seconds)
