"""The producers of an application while they run."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName
from zerotail.errors import ZerotailError
from zerotail.ports import End, Standing
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.transaction import Session
from zerotail.running.parts import ProducerPart
from zerotail.running.prepare import adapter_settings, prepare
from zerotail.running.report import Say
from zerotail.spark.producer_query import Route, read_instructions, start_producer_query

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
    ) -> None:
        self._spark = spark
        self._configuration = configuration
        self._site = site
        self._parts = parts
        self._say = say
        self._settings = adapter_settings(configuration, site)
        self._database = Session(self._settings.dsn, "zerotail producers")
        self._names: dict[ProducerNumber, str] = {}

    @property
    def name(self) -> str:
        """Their names as one part."""
        return f"producers {', '.join(part.name for part in self._parts)}"

    def start(self, checkpoint: str) -> StreamingQuery:
        """Send from wherever the stages' vectors say."""
        prepared = prepare(self._configuration, self._site)
        self._names = {prepared.numbers[part.name]: part.name for part in self._parts}
        routes = {
            prepared.numbers[part.name]: Route(part.name, prepared.topics[part.topic], part.transform, part.numbered)
            for part in self._parts
        }
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
            owed={name: int(stage.owed) for name, stage in self._configuration.stages.items()},
        )
        query = start_producer_query(ranges, self._settings.dsn, self._settings.kafka, routes, checkpoint, self._note)
        for part in self._parts:
            self._say(_ROLE, part.name, None, "working")
        return query

    def observe(self) -> bool:
        """Never: partitions that are added are taken up by the stream itself."""
        return False

    def reason_to_end(self) -> End | ZerotailError | None:
        """Why they must not go on here."""
        standing = self._database.read(read_standing)
        if isinstance(standing, Standing) and not standing.live_at(self._site):
            return End.NOT_ACTIVE
        return None

    def waits(self, reason: str) -> None:
        """Say that nothing is sent, and why."""
        for part in self._parts:
            self._say(_ROLE, part.name, None, "waiting", reason)

    def close(self) -> None:
        """Give back the session."""
        self._database.close()

    def _note(self, producer: ProducerNumber, partition: PartitionNumber, sent: int) -> None:
        self._say(_ROLE, self._names[producer], partition, "working", "", sent=sent)
