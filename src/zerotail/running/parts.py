"""What a configuration asks a site to run: producers with their transforms, stages with their handlers.

Handlers and transforms are the user's own code. It is found beside the configuration file, or wherever Python finds
it. A stage's version is what its handler and the transforms of its producers say of themselves, else a digest of their
code: with other code a new version begins at the next segment, and the journal says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from zerotail.code import load_object
from zerotail.config import Configuration, TopicChannel
from zerotail.core.identity import ChannelName, PartitionNumber, ProducerName, StageName, TopicName
from zerotail.errors import Misused
from zerotail.flow.stage import Stage
from zerotail.handler import Handler
from zerotail.running.code_versions import Transform, load_handler, transforms_before, version_of


@dataclass(frozen=True, slots=True)
class ProducerPart:
    """A producer to run."""

    name: ProducerName
    topic: TopicName
    transform: Transform | None
    numbered: bool
    """Whether zerotail numbers its rows."""
    transform_seconds: float = 1.0
    """So long may its transform be at one row."""


@dataclass(frozen=True, slots=True)
class StagePart:
    """A stage to run, with all of its partitions."""

    name: StageName
    topic: TopicName
    handler: Handler
    version: str
    targets: Mapping[str, int]
    owed_bytes: int
    handler_seconds: float
    """So long may its handler be at one record."""
    to_itself: frozenset[ChannelName] = frozenset()
    """The channels by which it gets, through topics, what it emits itself."""

    def at(self, partition: PartitionNumber) -> Stage:
        """One of its partitions."""
        return Stage(self.name, partition, self.topic, self.handler, self.version, self.targets)


@dataclass(frozen=True, slots=True)
class Parts:
    """What one Spark application runs."""

    producers: tuple[ProducerPart, ...]
    stages: tuple[StagePart, ...]


def plan_parts(
    configuration: Configuration,
    producers: Iterable[str] | None = None,
    stages: Iterable[str] | None = None,
) -> Parts:
    """The named parts with their code loaded; all of them where no names are given."""
    return Parts(
        tuple(_producer(configuration, name) for name in _chosen("producer", configuration.producers, producers)),
        tuple(_stage(configuration, name) for name in _chosen("stage", configuration.stages, stages)),
    )


def consumer_of(configuration: Configuration, topic: TopicName) -> StageName:
    """The one stage that reads a topic."""
    readers = [name for name, stage in configuration.stages.items() if stage.consumes == topic]
    if len(readers) != 1:
        found = f"the stages {' and '.join(readers)} read" if readers else "no stage reads"
        raise Misused(
            f"{found} the topic {topic}; a topic has one stage that reads it.",
            code="ZT114",
            why="The vector of that stage says how far its producers have come.",
        )
    return readers[0]


def topic_channels(configuration: Configuration) -> list[tuple[StageName, ChannelName, TopicName]]:
    """Channels that lead to a next stage: who emits on them, and which topic they write."""
    return [
        (stage, channel, leads.topic)
        for stage, settings in configuration.stages.items()
        for channel in settings.emits
        if isinstance(leads := configuration.channels[channel], TopicChannel)
    ]


def _chosen(what: str, known: Mapping[Any, Any], wanted: Iterable[str] | None) -> list[Any]:
    names = list(known) if wanted is None else list(wanted)
    for name in names:
        if name not in known:
            tries = [f"one of: {', '.join(known)}"] if known else []
            raise Misused(f"the configuration has no {what} {name!r}.", code="ZT115", tries=tries)
    return names


def _producer(configuration: Configuration, name: ProducerName) -> ProducerPart:
    settings = configuration.producers[name]
    # A spool is drained into instruction rows by the service that fills it: from here on it is a producer like others.
    if settings.table is not None:
        raise Misused(
            f"producer {name} has table, which this version does not run yet.",
            code="ZT113",
            tries=["insert into zerotail.instruction or zerotail.submission, or call zerotail.submit"],
        )
    transform = None if settings.transform is None else load_object(settings.transform, f"producer {name}")
    if transform is not None and not callable(transform):
        raise Misused(f"the transform {settings.transform} of producer {name} is no function.", code="ZT116")
    seconds = settings.transform_timeout.total_seconds()
    return ProducerPart(name, settings.topic, transform, settings.serials == "numbered", seconds)


def _stage(configuration: Configuration, name: StageName) -> StagePart:
    settings = configuration.stages[name]
    handler = load_handler(settings.handler, f"stage {name}")
    targets = targets_of(configuration, settings.emits)
    version = version_of(handler, transforms_before(configuration, name))
    seconds = settings.handler_timeout.total_seconds()
    to_itself = channels_to_itself(configuration, name)
    return StagePart(name, settings.consumes, handler, version, targets, int(settings.owed), seconds, to_itself)


def channels_to_itself(configuration: Configuration, stage: StageName) -> frozenset[ChannelName]:
    """The channels of a stage that lead, through topics and other stages, back to it."""

    def read_by(channel: ChannelName) -> set[StageName]:
        leads = configuration.channels[channel]
        topic = leads.topic if isinstance(leads, TopicChannel) else None
        return {name for name, settings in configuration.stages.items() if settings.consumes == topic}

    def leads_back(channel: ChannelName) -> bool:
        seen: set[StageName] = set()
        waiting = read_by(channel)
        while waiting:
            name = waiting.pop()
            seen.add(name)
            waiting |= {other for one in configuration.stages[name].emits for other in read_by(one)} - seen
        return stage in seen

    return frozenset(channel for channel in configuration.stages[stage].emits if leads_back(channel))


def targets_of(configuration: Configuration, channels: Iterable[ChannelName]) -> dict[str, int]:
    """Target partitions of each channel; those that are no topics have one."""
    known = {name: configuration.channels[name] for name in channels}
    return {
        str(name): configuration.topics[channel.topic].partitions if isinstance(channel, TopicChannel) else 1
        for name, channel in known.items()
    }
