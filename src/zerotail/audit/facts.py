"""What was seen: frozen values without any opinion.

A subject is one thing that rules look at. Its settings are a mapping that raises `NotSeen` for a name that nobody could
read, or for a value that is not what its name promises: a rule that asks for it has no answer then, and the subject is
listed as unknown under that rule. So nothing passes because it was not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

DAY_SECONDS = 86_400
YES, NO = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


class NotSeen(Exception):
    """A fact that a rule needs is not there; the text says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Values by name. `defaults` are the names that nobody has set."""

    values: Mapping[str, str]
    defaults: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> str:
        try:
            return self.values[name]
        except KeyError:
            raise NotSeen(f"{name} could not be read") from None

    def find(self, name: str) -> str | None:
        """The value, or None where having none is a value, too."""
        return self.values.get(name)

    def number(self, name: str) -> int:
        """A whole number."""
        try:
            return int(self[name])
        except ValueError:
            raise NotSeen(f"{name} is {self[name]!r}, which is no number") from None

    def switch(self, name: str) -> bool:
        """On or off."""
        value = self[name].lower()
        if value not in (*YES, *NO):
            raise NotSeen(f"{name} is {self[name]!r}, which is neither on nor off")
        return value in YES

    def is_default(self, name: str) -> bool:
        """Whether nobody has set it."""
        return name in self.defaults

    def shown(self, name: str) -> str:
        """For people: name, value, and whether somebody chose it."""
        return f"{name}={self[name]}{' (not set: the default)' if name in self.defaults else ''}"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A site's Kafka as a whole."""

    site: str
    bootstrap: str
    racks: Mapping[int, str | None]
    """Of the brokers that are alive."""
    eligible_leaders: int | str
    """Level of the feature `eligible.leader.replicas.version`; a text says why it could not be read."""

    @property
    def name(self) -> str:
        """For people."""
        return f"the Kafka cluster of {self.site}"

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"site": self.site, "bootstrap": self.bootstrap}


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker's settings."""

    site: str
    bootstrap: str
    broker: int
    settings: Settings
    recovery_seconds: int
    """How long a reader may be away and still find everything."""

    @property
    def name(self) -> str:
        """For people."""
        return f"broker {self.broker} of {self.site}"

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"site": self.site, "bootstrap": self.bootstrap, "broker": str(self.broker)}


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Where a partition's copies are, at this moment."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic of a cluster."""

    site: str
    bootstrap: str
    topic: str
    ours: bool
    """Named by the configuration: its records are in journal order and can be refilled."""
    settings: Settings
    partitions: tuple[PartitionFacts, ...]
    racks: Mapping[int, str | None]
    """Of the cluster's brokers that are alive."""
    recovery_seconds: int

    @property
    def name(self) -> str:
        """For people."""
        return f"topic {self.topic} at {self.site}"

    @property
    def copies(self) -> int:
        """The fewest of any partition."""
        return min(len(one.replicas) for one in self.partitions)

    @property
    def is_compacted_only(self) -> bool:
        """Whether age and size delete nothing here."""
        return self.settings["cleanup.policy"] == "compact"

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"site": self.site, "bootstrap": self.bootstrap, "topic": self.topic}


@dataclass(frozen=True, slots=True)
class PlannedTopicFacts:
    """A configured topic that is not there yet: what it will be made with."""

    topic: str
    sites: tuple[str, ...]
    replication: int
    min_insync: int
    retention_seconds: int
    recovery_seconds: int

    @property
    def name(self) -> str:
        """For people."""
        return f"topic {self.topic}, not made yet at {' and '.join(self.sites)}"

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"topic": self.topic}


Flavour = Literal["java", "librdkafka", "unknown"]


@dataclass(frozen=True, slots=True)
class ProducerFacts:
    """What a producer client runs with, under the Java client's names; defaults filled in."""

    name: str
    flavour: Flavour
    settings: Settings
    resends: bool
    """Whether what it gives up on is read again from a durable source, and repeats are dropped by whoever reads."""

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"file": self.name}


@dataclass(frozen=True, slots=True)
class ConsumerFacts:
    """What a consumer client runs with, under the Java client's names; defaults filled in."""

    name: str
    flavour: Flavour
    settings: Settings
    keeps_place: bool
    """Whether it keeps its place in its own database with the result, and judges each record itself."""
    record_seconds: float | None = None
    """The longest time that one record takes, if somebody said so."""

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"file": self.name}


@dataclass(frozen=True, slots=True)
class SparkFacts:
    """The options with which Spark reads a topic; defaults filled in."""

    name: str
    settings: Settings
    keeps_place: bool

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"file": self.name}


@dataclass(frozen=True, slots=True)
class SettingOverride:
    """A setting of one role, one database, or of a role in a database."""

    role: str | None
    database: str | None
    value: str


@dataclass(frozen=True, slots=True)
class FollowerFacts:
    """A standby as its primary sees it; the state is None when we may not see it."""

    name: str
    state: str | None
    sync_state: str | None
    has_slot: bool


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """A physical replication slot."""

    slot: str
    active: bool
    wal_status: str | None


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """A site's PostgreSQL."""

    site: str
    address: str
    """Host, port and database for psql, without any password."""
    is_standby: bool
    system: int
    version: int
    settings: Settings
    overrides: tuple[SettingOverride, ...]
    """Of synchronous_commit."""
    followers: tuple[FollowerFacts, ...]
    slots: tuple[SlotFacts, ...]
    unlogged: tuple[str, ...]
    """Tables without a log, in this database."""

    @property
    def name(self) -> str:
        """For people."""
        return f"the {'standby' if self.is_standby else 'primary'} database of {self.site}"

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"site": self.site, "address": self.address}


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """One side of a comparison."""

    site: str
    brokers: tuple[BrokerFacts, ...]
    topics: Mapping[str, TopicFacts]
    """The configured ones that exist, by the name in the configuration."""
    database: DatabaseFacts


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Both sites, each against the other."""

    first: SiteFacts
    second: SiteFacts

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.first.site} against {self.second.site}"

    @property
    def words(self) -> Mapping[str, str]:
        """What a repair line may name."""
        return {"site": self.second.site}


Subject = (
    ClusterFacts
    | BrokerFacts
    | TopicFacts
    | PlannedTopicFacts
    | ProducerFacts
    | ConsumerFacts
    | SparkFacts
    | DatabaseFacts
    | PairFacts
)


@dataclass(frozen=True, slots=True)
class Unlooked:
    """Something that could not be looked at, and so none of its kinds of subject could."""

    name: str
    reason: str
    kinds: tuple[type[Subject], ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that was seen, and what was not."""

    subjects: tuple[Subject, ...] = ()
    unlooked: tuple[Unlooked, ...] = ()
    answered: bool = True
    """Whether anybody did, or there was nobody to ask."""
