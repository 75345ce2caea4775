"""The configuration as a value: what each key means, its type and what is taken when it is not given.

The names of the fields are the keys of the file. Sections are frozen; nothing can be given that is not named
here. What one section alone must fulfil is checked here, what several must fulfil together in `check.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from zerotail.config import field
from zerotail.config.channel import Channel
from zerotail.config.part import Part
from zerotail.config.problem import Unfit
from zerotail.config.scalar import Bytes
from zerotail.core.identity import SiteName
from zerotail.errors import Misused


class Kafka(Part):
    """One Kafka cluster."""

    bootstrap: field.Brokers
    """Brokers to ask first, as host:port, parted by commas."""
    settings: field.ClientSettings = Field(default={})
    """Settings of the Kafka client, under the names of Kafka: security, timeouts, sizes."""


class Database(Part):
    """One PostgreSQL."""

    dsn: field.ConnectionString
    """Connection string of libpq, as options or as a URL."""


class Site(Part):
    """One datacentre: a Kafka cluster and a PostgreSQL."""

    kafka: Kafka
    """The site's own cluster."""
    database: Database
    """The site's own database; the other site holds its synchronous standby, or the reverse."""


class Topic(Part):
    """A topic between producers and stages, the same at both sites."""

    partitions: Annotated[int, Field(ge=1, le=10_000), field.whole]
    """How many partitions. Each has an order of its own."""
    replication: Annotated[int, Field(ge=1, le=15), field.whole] = 3
    """Copies of each partition inside a site. A lab makes no more than it has brokers."""
    min_insync: Annotated[int, Field(ge=1, le=15), field.whole] = 2
    """Copies that must have a record before it counts as written."""
    retention: field.Duration = timedelta(days=7)
    """How long Kafka keeps records. The journal and the instructions stay longer."""

    @model_validator(mode="after")
    def _copies_fit(self) -> Self:
        if self.replication > 1 and not 2 <= self.min_insync <= self.replication:
            raise Unfit(
                f"min_insync is {self.min_insync} with replication {self.replication}: it must be 2 or more, "
                "or a broker's death loses acknowledged records, and at most replication"
            )
        return self


class Producer(Part):
    """A named source of instructions for one topic."""

    topic: field.TopicName
    """The topic that it writes to."""
    transform: field.ObjectPath | None = None
    """Function from an instruction to a record's value, as module:name. Without it, the value itself."""
    transform_timeout: Annotated[field.Duration, Field(ge=timedelta(milliseconds=100))] = timedelta(seconds=1)
    """How long it may be at one row."""
    source: Literal["table", "spool"] = "table"
    """Where instructions come from: a table of the database, or a queue on the disk of a service that drains it."""
    table: field.TableName | None = None
    """The business's own table. Without it, instructions are submitted through zerotail."""
    serials: Literal["given", "numbered"] = "numbered"
    """Who numbers instructions: the business (dense, from 1 for each partition) or zerotail."""
    spool: field.FilePath | None = None
    """Folder of the queue, with `source: spool`, as the service's machine sees it. Relative to the configuration file.
    """
    resend_after: field.Duration = timedelta(seconds=5)
    """How long a stage may stand behind what was sent before it is sent again."""

    @model_validator(mode="after")
    def _source_is_complete(self) -> Self:
        if self.source == "spool" and self.spool is None:
            raise Unfit("a producer with source: spool needs the folder of the queue", "add spool: FOLDER")
        if self.source == "table" and self.spool is not None:
            raise Unfit("spool has a meaning only with source: spool", "add source: spool, or remove spool")
        if self.source == "spool" and self.table is not None:
            raise Unfit("table has no meaning with source: spool", "remove one of the two")
        if self.source == "spool" and self.serials == "given":
            raise Unfit("entries of a queue are numbered when they are drained", "remove serials: given")
        return self


class Stage(Part):
    """A handler with state, applied to the records of one topic in order."""

    consumes: field.TopicName
    """The topic that it reads."""
    handler: field.ObjectPath
    """The handler: a class, a function that makes one, or an object, as module:name."""
    emits: tuple[field.ChannelName, ...] = ()
    """The channels that its emissions go to. A channel belongs to one stage."""
    state: Literal["database", "replay"] = "database"
    """Where the handler's state is after a takeover: in the database, or rebuilt by replay."""
    stalled_after: field.Duration = timedelta(seconds=60)
    """How long a partition with records waiting may make no progress before it is reported as stalled."""
    handler_timeout: Annotated[field.Duration, Field(ge=timedelta(milliseconds=100))] = timedelta(seconds=30)
    """How long a handler may be at one record before the record stops its partition."""
    owed: Annotated[field.Size, Field(ge=Bytes(64_000))] = Bytes(64_000_000)
    """Bytes of emissions that may wait for acknowledgement before the stage pauses."""
    feedback: field.PlainText | None = None
    """Why the stage may get what it emits itself, through topics. Without a reason such a circle is refused.
    """


class Restore(Part):
    """How the order of a topic is restored after a takeover."""

    strategy: Literal["auto", "skip", "ordered-refill", "unbounded", "bounded", "sort", "mirror-tail", "follower"] = (
        "auto"
    )
    """Which of the strategies; `auto` lets the planner choose by predicted time and memory."""
    memory: Annotated[field.Size, Field(ge=Bytes(1_000_000))] = Bytes(512_000_000)
    """The most memory that a restore may use for records that wait for their turn."""


class Objectives(Part):
    """What `takeover run` and `mirror status` measure against."""

    takeover: field.Duration = timedelta(seconds=30)
    """How long a takeover may take."""
    lag: field.Duration = timedelta(seconds=5)
    """How far a mirror may be behind."""


class Takeover(Part):
    """How the other site becomes the active one."""

    automatic: field.Switch = False
    """Whether the watcher takes over by itself."""
    after: field.Duration = timedelta(seconds=10)
    """How long the active site must be out before an automatic takeover."""
    stale_after: field.Duration = timedelta(minutes=5)
    """How old a copy may be that is taken over without a statement about its age."""
    exposed: Literal["release", "hold"] = "release"
    """What happens to emissions while no other site confirms them: sent without a second copy, or kept back."""
    shadow: field.Switch = False
    """Whether the follower also runs the handlers over the journal and compares what comes out."""
    fence: field.Command | None = None
    """Command that shuts the lost site off. {site} is its name, {other} the survivor's."""
    promote: field.Command | None = None
    """Command that promotes the database of {site}, instead of pg_promote (under Patroni, for instance)."""
    stop: field.Command | None = None
    """Command that stops the database of {site} cleanly, for a handover to {other}."""
    attach: field.Command | None = None
    """Command that attaches {site} as the synchronous standby of {other}: it stops the database of {site} and replaces
    it by a fresh copy.
    """


class Spark(Part):
    """The engine of producers, stages, follower and restore."""

    master: field.PlainText = "local[2]"
    """Where Spark runs: local[N], spark://host:port, yarn, k8s://…"""
    max_records_per_batch: Annotated[int, Field(ge=1, le=10_000_000), field.whole] = 50_000
    """The most records of one micro-batch, over all partitions."""
    settings: Mapping[field.SparkSetting, field.SettingValue] = {}
    """Further settings of Spark, under the names of Spark."""


class Mirror(Part):
    """A flow of whole topics between clusters, beside the journaled ones."""

    name: field.Name | None = None
    """Its name in commands and in Kafka. Without it, the names of source and target."""
    topology: Literal["active-passive", "active-active", "hub-and-spoke", "stretch"]
    """The shape of the flow."""
    engine: Literal["spark", "mm2"] = "spark"
    """Who carries the records: Spark, or MirrorMaker 2."""
    source: field.Names
    """A site or a cluster; for hub-and-spoke it may be a list of them."""
    target: field.Names | None = None
    """A site or a cluster; for hub-and-spoke it may be a list of them. A stretch cluster has none."""
    topics: Annotated[tuple[field.Pattern, ...], Field(min_length=1)]
    """Regular expressions for whole names of topics."""
    topic_names: Literal["identity", "prefixed"] = "identity"
    """Names at the target: the same, or with the name of the source and a dot in front."""

    @property
    def called(self) -> str:
        """The name in commands."""
        return self.name or "-".join((*self.source, *(self.target or ())))

    @model_validator(mode="after")
    def _shape_fits(self) -> Self:
        targets = self.target or ()
        if self.topology == "stretch":
            if targets or len(self.source) > 1:
                raise Unfit("a stretch cluster is one cluster over several sites: nothing is mirrored", "remove target")
            return self
        if not targets:
            raise Unfit(f"{self.topology} needs a target", "add target: NAME")
        several = len(self.source) > 1 or len(targets) > 1
        if self.topology != "hub-and-spoke" and several:
            raise Unfit(f"{self.topology} has one source and one target", "use hub-and-spoke for several")
        if len(self.source) > 1 and len(targets) > 1:
            raise Unfit("hub-and-spoke has several sources or several targets, not both")
        if (self.topology, self.engine, self.topic_names) == ("active-active", "mm2", "identity"):
            raise Unfit("MirrorMaker 2 would send records in a circle when names are kept", "set topic_names: prefixed")
        return self


class Secrets(Part):
    """Where secrets may be kept."""

    folders: tuple[field.FilePath, ...] = ()
    """Folders, besides the configuration file's own, in which files named by ${file:path} may lie."""


class Security(Part):
    """What may be less than encrypted and proven."""

    insecure: tuple[field.PlainText, ...] = ()
    """Connections to other machines that may do without: kafka.NAME, database.SITE, channel.NAME."""


class Configuration(Part):
    """Everything that zerotail is told."""

    name: field.Name
    """The name of this pair of sites, in topics, metrics and reports."""
    sites: Annotated[Mapping[field.SiteName, Site], Field(json_schema_extra={"minProperties": 2, "maxProperties": 2})]
    """The two sites."""
    prefer: field.SiteName | None = None
    """The site that `failback` returns to. Without it, the first one."""
    topics: Mapping[field.TopicName, Topic] = {}
    """Topics between producers and stages."""
    producers: Mapping[field.ProducerName, Producer] = {}
    """Sources of instructions."""
    stages: Mapping[field.StageName, Stage] = {}
    """What is done with the records."""
    channels: Mapping[field.ChannelName, Channel] = {}
    """Ways to the outside, and between stages."""
    restore: Restore = Restore()
    """Restoring the order of topics."""
    objectives: Objectives = Objectives()
    """Limits to be measured against."""
    takeover: Takeover = Takeover()
    """Change of the active site."""
    spark: Spark = Spark()
    """The engine."""
    clusters: Mapping[field.Name, Kafka] = {}
    """Kafka clusters besides those of the sites, for mirrors."""
    mirrors: tuple[Mirror, ...] = ()
    """Flows of whole topics."""
    secrets: Secrets = Secrets()
    """Rules for secrets."""
    security: Security = Security()
    """Exceptions from the rule that what leaves a machine is encrypted."""

    @property
    def preferred_site(self) -> SiteName:
        """The site that `failback` returns to."""
        return self.prefer or next(iter(self.sites))

    def require_site(self, name: str) -> SiteName:
        """The site of this name; `Misused` when there is none."""
        found = next((site for site in self.sites if site == name), None)
        if found is None:
            raise Misused(f"there is no site {name!r}.", code="ZT115", tries=[f"one of: {', '.join(self.sites)}"])
        return found

    def other_site(self, site: SiteName) -> SiteName:
        """The other one of the two."""
        first, second = self.sites
        return second if site == first else first
