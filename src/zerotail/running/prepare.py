"""Before anything runs: topics exist with their partitions, producers have numbers, stages have heads.

Every process of a site does this when it starts, so the order in which they are started does not matter, and a
partition or a producer that was added to the configuration is there for everyone as soon as one process knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

from zerotail.config import Configuration
from zerotail.core.epoch import topic_at
from zerotail.core.identity import ProducerNumber, SiteName, StageName, TopicName
from zerotail.core.site import require_known_sites
from zerotail.errors import Refused, Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.ports import Refused as Declined
from zerotail.ports import Standing
from zerotail.postgres.lineage import NO_EPOCH, NOT_LIVE, read_standing
from zerotail.postgres.registration import Registered, Registration, find_numbers, lane_name, register
from zerotail.postgres.site import read_numbers
from zerotail.postgres.transaction import NO_TABLES, OLD_TABLES, READ_ONLY, Session
from zerotail.running.parts import consumer_of, topic_channels
from zerotail.wiring import AdapterSettings

WAITING = "until this site is the active one"
"""Why a part of a standby waits."""
FOLLOWED = "the topics hold all of the journal"
"""What a standby says when its follower has caught up."""
_LOOK_SECONDS = 0.05
_LOOK_PATIENCE_SECONDS = 5.0


class NotActiveError(Refused):
    """This site is not the active one."""

    exit_code = 7


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a process of the site needs to know before it begins."""

    standing: Standing
    numbers: dict[str, ProducerNumber]
    """Of producers, by name."""
    partitions: dict[TopicName, int]
    topics: dict[TopicName, TopicName]
    """What each topic is called at this site: one that rejoined has new ones."""


def adapter_settings(configuration: Configuration, site: SiteName) -> AdapterSettings:
    """Where a site's neighbours are."""
    configuration.require_site(site)
    own, other = configuration.sites[site], configuration.sites[configuration.other_site(site)]
    return AdapterSettings(
        site, own.database.dsn.reveal(), other.database.dsn.reveal(), cluster_of(configuration, site)
    )


def cluster_of(configuration: Configuration, site: SiteName) -> Cluster:
    """A site's Kafka cluster."""
    kafka = configuration.sites[site].kafka
    settings = tuple(sorted((name, value.reveal()) for name, value in kafka.settings.items()))
    return Cluster(kafka.bootstrap, settings)


def topics_of(configuration: Configuration) -> dict[TopicName, TopicSettings]:
    """How the configured topics are made."""
    return {
        name: TopicSettings(topic.partitions, topic.replication, topic.min_insync, topic.retention)
        for name, topic in configuration.topics.items()
    }


def prepare(configuration: Configuration, site: SiteName) -> Prepared:
    """Make what is missing; `NotActiveError` at a site that is not the active one, `Refused` where the database knows
    other sites than the configuration.
    """
    settings = adapter_settings(configuration, site)
    session = Session(settings.dsn, "zerotail prepare")
    try:
        _require_our_sites(session, configuration)
        # The topics' names depend on the standing, the heads on the topics' partitions: hence twice.
        standing = _registered(session, site, [], {}).standing
        topics, partitions = _ensure_topics(configuration, site, standing)
        producers = [
            Registration(name, producer.topic, consumer_of(configuration, producer.topic), serials=producer.serials)
            for name, producer in configuration.producers.items()
        ]
        producers += [
            Registration(
                lane_name(stage, channel, number),
                topic,
                consumer_of(configuration, topic),
                channel,
                number,
            )
            for stage, channel, topic in topic_channels(configuration)
            for number in range(partitions[configuration.stages[stage].consumes])
        ]
        heads = {name: partitions[stage.consumes] for name, stage in configuration.stages.items()}
        registered = _registered(session, site, producers, heads)
    finally:
        session.close()
    return Prepared(registered.standing, dict(registered.numbers), partitions, topics)


def require_begun(configuration: Configuration, site: SiteName) -> None:
    """`Refused` where the database says that nothing has begun, or knows other sites; a silent one is waited for."""
    session = Session(configuration.sites[site].database.dsn.reveal(), "zerotail prepare")
    try:
        _require_our_sites(session, configuration)
        standing = session.read(read_standing)
    finally:
        session.close()
    if isinstance(standing, Declined) and standing.reason in (NO_TABLES, NO_EPOCH):
        raise _not_begun(site, standing.reason)


def _require_our_sites(session: Session, configuration: Configuration) -> None:
    known = session.read(read_numbers)
    if isinstance(known, dict) and known:  # a schema of before has none
        require_known_sites(configuration.sites, known)


def _not_begun(site: SiteName, reason: str) -> Refused:
    return Refused(
        f"nothing has begun in the database of {site}: {reason}.",
        code="ZT467",
        tries=[f"zerotail schema apply --site {site} --first-epoch    # if {site} is to be the active site"],
    )


def prepare_or_wait(configuration: Configuration, site: SiteName, *, waiting: bool) -> tuple[Prepared, bool]:
    """What `prepare` answers, and whether the turn of this site has come; at a standby only whoever waits goes on."""
    try:
        return prepare(configuration, site), True
    except NotActiveError:
        if not waiting:
            raise
        return _prepare_to_wait(configuration, site), False


def _prepare_to_wait(configuration: Configuration, site: SiteName) -> Prepared:
    """At a standby: topics are made, and what the active site has registered is read."""
    names = [str(name) for name in configuration.producers]
    session = Session(adapter_settings(configuration, site).dsn, "zerotail prepare")
    try:
        seen = session.read(lambda connection: (read_standing(connection), find_numbers(connection, names)))
    finally:
        session.close()
    if not isinstance(seen, tuple):
        raise session.silence(site, seen, tries=["zerotail status"])
    standing, numbers = seen
    missing = [name for name in names if name not in numbers]
    if missing:
        raise Unavailable(f"the producer {missing[0]} is not registered yet; the active site does that.", code="ZT469")
    topics, partitions = _ensure_topics(configuration, site, standing)
    return Prepared(standing, numbers, partitions, topics)


def wait_until_active(settings: AdapterSettings, stop: Event) -> bool:
    """Wait at a standby until its site is the active one; False when told to stop before."""
    session = Session(settings.dsn, "zerotail standby", patience_seconds=_LOOK_PATIENCE_SECONDS)
    try:
        while not stop.is_set():
            standing = session.read(read_standing)
            if isinstance(standing, Standing) and standing.live_at(settings.site):
                return True
            stop.wait(_LOOK_SECONDS)
        return False
    finally:
        session.close()


def _ensure_topics(
    configuration: Configuration, site: SiteName, standing: Standing
) -> tuple[dict[TopicName, TopicName], dict[TopicName, int]]:
    """What each topic is called at this site, and how many partitions it has; those that are missing are made."""
    topics = {topic: topic_at(topic, standing.rejoined.get(site)) for topic in configuration.topics}
    client = admin_client(cluster_of(configuration, site))
    wanted = topics_of(configuration).items()
    return topics, {topic: ensure_topic(client, topics[topic], settings) for topic, settings in wanted}


def _registered(
    session: Session, site: SiteName, producers: list[Registration], heads: dict[StageName, int]
) -> Registered:
    answer = session.write(lambda connection: register(connection, site, producers, heads))
    if isinstance(answer, Registered):
        return answer
    if isinstance(answer, Declined):
        if answer.reason in (NOT_LIVE, READ_ONLY):
            raise NotActiveError(f"site {site} is not the active one.", code="ZT461", tries=["zerotail status"])
        if answer.reason in (NO_TABLES, NO_EPOCH):
            raise _not_begun(site, answer.reason)
        if answer.reason.startswith(OLD_TABLES):  # it goes on by itself once they are the new ones
            raise session.silence(site, answer)
        raise Refused(f"{answer.reason}.", code="ZT462")
    raise session.silence(site, tries=["zerotail status"])
