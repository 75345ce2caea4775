"""Ask both sites at the same time; whoever is silent is listed as such and holds nobody up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zerotail.audit.client_file import consumer_facts, producer_facts, read_properties
from zerotail.audit.facts import (
    DAY_SECONDS,
    BrokerFacts,
    ClusterFacts,
    DatabaseFacts,
    Observed,
    PairFacts,
    PlannedTopicFacts,
    Settings,
    SiteFacts,
    Subject,
    TopicFacts,
    Unlooked,
)
from zerotail.core.epoch import topic_at
from zerotail.core.identity import Epoch, TopicName
from zerotail.status.answers import Unanswered
from zerotail.status.observation import Question

if TYPE_CHECKING:
    from zerotail.config import Configuration
    from zerotail.kafka.survey import ClusterSurvey
    from zerotail.postgres.survey import DatabaseSurvey

LOOK_SECONDS = 8.0
RECOVERY_SECONDS = 3 * DAY_SECONDS
"""A long weekend: so long a reader may be away and must still find everything."""


@dataclass(frozen=True, slots=True)
class Files:
    """Property files of other services."""

    producers: Sequence[Path] = ()
    consumers: Sequence[Path] = ()
    record_seconds: float | None = None
    """The longest time that a consumer takes for one record, if somebody said so."""


@dataclass(frozen=True, slots=True)
class _Site:
    """What one site answered."""

    name: str
    bootstrap: str
    cluster: ClusterSurvey | Unanswered
    database: DatabaseSurvey | Unanswered


def observe_files(files: Files) -> Observed:
    """What the clients of other services run with; nobody is asked."""
    producers = [producer_facts(str(path), read_properties(path)) for path in files.producers]
    consumers = [consumer_facts(str(path), read_properties(path), files.record_seconds) for path in files.consumers]
    return Observed((*producers, *consumers))


def observe_sites(
    configuration: Configuration, *, only: str | None = None, recovery_seconds: int = RECOVERY_SECONDS
) -> Observed:
    """Look at both sites, or at one, and at our own clients."""
    from zerotail.audit.own_clients import own_clients

    sites = _ask(configuration, only)
    names = _names(configuration, sites)
    seen: list[Subject | Unlooked] = []
    for site in sites:
        seen += _look_at(site, configuration, names[site.name], recovery_seconds)
    seen += _planned(configuration, sites, names, recovery_seconds)
    seen += own_clients(configuration, only)
    if only is None:
        seen.append(_pair(sites, seen, names))
    return Observed(
        tuple(one for one in seen if not isinstance(one, Unlooked)),
        tuple(one for one in seen if isinstance(one, Unlooked)),
        any(not isinstance(one, Unanswered) for site in sites for one in (site.cluster, site.database)),
    )


def _ask(configuration: Configuration, only: str | None) -> list[_Site]:
    """Each server of each site in a thread of its own."""
    from zerotail.kafka.cluster import Cluster
    from zerotail.kafka.survey import survey_cluster
    from zerotail.postgres.survey import survey_database

    asked = []
    for name, site in configuration.sites.items():
        if only in (None, name):
            settings = tuple(sorted((key, value.reveal()) for key, value in site.kafka.settings.items()))
            cluster = Cluster(site.kafka.bootstrap, settings)
            asked.append(
                (
                    name,
                    cluster.bootstrap,
                    Question(partial(survey_cluster, cluster), LOOK_SECONDS),
                    Question(partial(survey_database, name, site.database.dsn.reveal()), LOOK_SECONDS),
                )
            )
    return [
        _Site(name, bootstrap, kafka.answer(None), database.answer(None)) for name, bootstrap, kafka, database in asked
    ]


def _names(configuration: Configuration, sites: Sequence[_Site]) -> Mapping[str, Mapping[str, str]]:
    """What each configured topic is called at each site: one that rejoined has new ones."""
    rejoined: dict[str, int] = {}
    for site in sites:
        if not isinstance(site.database, Unanswered):
            rejoined |= {one: max(epoch, rejoined.get(one, 0)) for one, epoch in site.database.rejoined.items()}
    found = {}
    for name in configuration.sites:
        epoch = Epoch(rejoined[name]) if name in rejoined else None
        found[str(name)] = {str(topic): str(topic_at(topic, epoch)) for topic in configuration.topics}
    return found


def _look_at(
    site: _Site, configuration: Configuration, names: Mapping[str, str], recovery_seconds: int
) -> Iterator[Subject | Unlooked]:
    if isinstance(site.cluster, Unanswered):
        yield Unlooked(f"Kafka of {site.name}", site.cluster.reason, (ClusterFacts, BrokerFacts, TopicFacts))
    else:
        yield ClusterFacts(site.name, site.bootstrap, site.cluster.racks, site.cluster.eligible_leaders)
        yield from _brokers(site, site.cluster, recovery_seconds)
        yield from _topics(site, site.cluster, configuration, names, recovery_seconds)
    if isinstance(site.database, Unanswered):
        yield Unlooked(f"the database of {site.name}", site.database.reason, (DatabaseFacts,))
    else:
        yield site.database.facts


def _brokers(site: _Site, cluster: ClusterSurvey, recovery_seconds: int) -> Iterator[Subject | Unlooked]:
    for broker, settings in cluster.brokers.items():
        if isinstance(settings, Settings):
            yield BrokerFacts(site.name, site.bootstrap, broker, settings, recovery_seconds)
        else:
            yield Unlooked(f"broker {broker} of {site.name}", settings, (BrokerFacts,))


def _topics(
    site: _Site,
    cluster: ClusterSurvey,
    configuration: Configuration,
    names: Mapping[str, str],
    recovery_seconds: int,
) -> Iterator[Subject | Unlooked]:
    configured = {actual: configuration.topics[TopicName(topic)] for topic, actual in names.items()}
    for name, topic in cluster.topics.items():
        if not isinstance(topic.settings, Settings):
            yield Unlooked(f"topic {name} at {site.name}", topic.settings, (TopicFacts,))
            continue
        kept = int(configured[name].retention.total_seconds()) if name in configured else 0
        yield TopicFacts(
            site=site.name,
            bootstrap=site.bootstrap,
            topic=name,
            ours=name in configured,
            settings=topic.settings,
            partitions=topic.partitions,
            racks=cluster.racks,
            recovery_seconds=max(recovery_seconds, kept),
        )


def _planned(
    configuration: Configuration,
    sites: Sequence[_Site],
    names: Mapping[str, Mapping[str, str]],
    recovery_seconds: int,
) -> Iterator[Subject]:
    """Configured topics that a cluster does not have yet."""
    for name, topic in configuration.topics.items():
        missing = tuple(
            site.name
            for site in sites
            if not isinstance(site.cluster, Unanswered) and names[site.name][name] not in site.cluster.topics
        )
        if missing:
            retention = int(topic.retention.total_seconds())
            yield PlannedTopicFacts(name, missing, topic.replication, topic.min_insync, retention, recovery_seconds)


def _pair(
    sites: Sequence[_Site], subjects: Sequence[Subject | Unlooked], names: Mapping[str, Mapping[str, str]]
) -> PairFacts | Unlooked:
    sides = []
    for site in sites:
        brokers = tuple(one for one in subjects if isinstance(one, BrokerFacts) and one.site == site.name)
        if isinstance(site.database, Unanswered) or not brokers:
            return Unlooked("the two sites compared", f"not all of {site.name} could be looked at", (PairFacts,))
        seen = {one.topic: one for one in subjects if isinstance(one, TopicFacts) and one.site == site.name}
        topics = {topic: seen[actual] for topic, actual in names[site.name].items() if actual in seen}
        sides.append(SiteFacts(site.name, brokers, topics, site.database.facts))
    first, second = sides
    return PairFacts(first, second)
