"""The places of a configured topic at a site, and the handlers behind them."""

from __future__ import annotations

from dataclasses import replace

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, SiteName, TopicName
from zerotail.errors import Misused
from zerotail.operate.pipeline import stage_at, transforms_of
from zerotail.restore.place import Place
from zerotail.restore.rebuild import Rebuild
from zerotail.restore.report import PartitionReport
from zerotail.restore.run import run_restore
from zerotail.restore.seen import Seen
from zerotail.running.parts import consumer_of
from zerotail.running.prepare import cluster_of, topics_of


def places_of(configuration: Configuration, site: SiteName, topic: str, partition: int | None = None) -> list[Place]:
    """One place for each partition of a topic, or the one that was asked for."""
    name = next((known for known in configuration.topics if known == topic), None)
    if name is None:
        raise Misused(
            f"the configuration has no topic {topic!r}.",
            code="ZT140",
            tries=[f"one of: {', '.join(configuration.topics)}"],
        )
    shapes = topics_of(configuration)
    partitions = range(shapes[TopicName(name)].partitions)
    if partition is not None and partition not in partitions:
        raise Misused(f"topic {topic} has the partitions 0 to {partitions[-1]}, not {partition}.", code="ZT141")
    return [
        Place(
            cluster=cluster_of(configuration, site),
            dsn=configuration.sites[site].database.dsn.reveal(),
            site=site,
            stage=consumer_of(configuration, TopicName(name)),
            topic=TopicName(name),
            partition=PartitionNumber(number),
            shape=shapes[TopicName(name)],
            transforms=transforms_of(configuration),
        )
        for number in ([partition] if partition is not None else partitions)
    ]


def restore_seen(
    configuration: Configuration, seen: Seen, *, rebuild: bool, check_values: bool = True
) -> PartitionReport:
    """Restore one place on this machine; with `rebuild` through the handler, whose state must come out as stored."""
    if not rebuild:
        return run_restore(seen, check_values=check_values)
    rebuilding = rebuild_of(configuration, seen)
    done = run_restore(seen, check_values=check_values, consume=rebuilding.consume)
    return replace(done, state_digest=rebuilding.require_stored_state(seen.place.dsn))


def rebuild_of(configuration: Configuration, seen: Seen) -> Rebuild:
    """What rebuilds the state of the stage that reads a place, with the configured handler."""
    return Rebuild(stage_at(configuration, seen.place.stage, seen.place.partition), seen.recorded.journal)
