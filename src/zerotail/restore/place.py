"""What is restored: one partition of a topic at one site, by the journal of the stage that reads it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from zerotail.core.admission import Limits
from zerotail.core.epoch import topic_at
from zerotail.core.identity import PartitionNumber, SiteName, StageName, TopicName
from zerotail.core.installation import UNMARKED, Installation
from zerotail.core.restoration.journal import Journal
from zerotail.deadline import Deadline
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings
from zerotail.kafka.partition_log import READ_AHEAD_BYTES, ROWS_PER_BATCH, PartitionLog
from zerotail.postgres.connection import session, snapshot
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.reading import Sources, Transforms, find_sources
from zerotail.postgres.restoring import read_whole_journal

_CONNECT_SECONDS = 30.0
_LOOKING_ROWS, _LOOKING_BYTES = 4_000, 2_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """One partition, and where its log and its journal are."""

    cluster: Cluster
    dsn: str = field(repr=False)
    site: SiteName
    stage: StageName
    topic: TopicName
    """As the configuration calls it; at a site that came back, the log has the epoch in its name."""
    partition: PartitionNumber
    shape: TopicSettings
    """How a topic is made that is to hold the same records."""
    transforms: Transforms = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the database says about a place, in one snapshot."""

    journal: Journal
    limits: Limits
    sources: Sources
    topic: TopicName
    """The log's name at this site."""
    installation: Installation = UNMARKED

    def log(
        self, place: Place, *, rows_per_batch: int = ROWS_PER_BATCH, read_ahead_bytes: int = READ_AHEAD_BYTES
    ) -> PartitionLog:
        """The log of the place, with what counts of each epoch."""
        limits, installation = self.limits, self.installation
        return PartitionLog(
            place.cluster, self.topic, place.partition, limits, installation, rows_per_batch, read_ahead_bytes
        )

    def log_named(self, place: Place, topic: TopicName) -> PartitionLog:
        """Another log of the same records."""
        return replace(self.log(place), topic=topic)

    def log_to_look_at(self, place: Place, topic: TopicName | None = None) -> PartitionLog:
        """The log of the place, or another one, for a few looks: little of it is read ahead."""
        log = self.log(place, rows_per_batch=_LOOKING_ROWS, read_ahead_bytes=_LOOKING_BYTES)
        return replace(log, topic=topic or self.topic)


def read_recorded(place: Place) -> Recorded:
    """Read the journal, the epochs and where records come from; `Broken` when the journal is damaged."""
    with session(place.dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
        journal = read_whole_journal(connection, place.stage, place.partition)
        sources = find_sources(connection, place.stage, place.partition, place.transforms)
        # Last, of the same moment: who has read it holds up an epoch that goes back to gated.
        standing = read_standing(connection)
        return Recorded(
            journal,
            standing.lineage.limits(place.partition),
            sources,
            topic_at(place.topic, standing.rejoined.get(place.site)),
            standing.installation,
        )
