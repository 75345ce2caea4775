"""The mirrors of a configuration as flows, and the clusters that they join."""

from __future__ import annotations

from collections.abc import Iterable

from zerotail.config import Configuration, Mirror, Secret
from zerotail.core.topology import Flow, plan_flows
from zerotail.errors import Misused
from zerotail.kafka.cluster import Cluster


def clusters_of(configuration: Configuration, *, as_written: bool = False) -> dict[str, Cluster]:
    """Every Kafka cluster by its name: those of the sites, and the further ones.

    `as_written` leaves references to secrets as they stand in the file.
    """
    places = {name: site.kafka for name, site in configuration.sites.items()} | dict(configuration.clusters)

    def said(value: Secret) -> str:
        return value.written if as_written else value.reveal()

    return {
        str(name): Cluster(kafka.bootstrap, tuple((key, said(value)) for key, value in sorted(kafka.settings.items())))
        for name, kafka in places.items()
    }


def brokers_of(configuration: Configuration) -> dict[str, frozenset[str]]:
    """The addresses of each cluster."""
    return {name: frozenset(cluster.bootstrap.split(",")) for name, cluster in clusters_of(configuration).items()}


def flows_of(configuration: Configuration, mirror: Mirror) -> tuple[Flow, ...]:
    """The flows of one mirror; a stretch cluster has none."""
    return plan_flows(
        mirror.called,
        mirror.topology,
        mirror.source,
        mirror.target or (),
        patterns=mirror.topics,
        names=mirror.topic_names,
        engine=mirror.engine,
        clusters=(*map(str, configuration.sites), *configuration.clusters),
    )


def require_mirror(configuration: Configuration, name: str | None) -> Mirror:
    """The mirror of this name; without a name, the only one."""
    mirrors = configuration.mirrors
    if name is None and len(mirrors) == 1:
        return mirrors[0]
    found = [mirror for mirror in mirrors if mirror.called == name]
    if found:
        return found[0]
    known = [mirror.called for mirror in mirrors]
    if not known:
        raise Misused("the configuration has no mirrors.", code="ZT150", tries=["zerotail config schema"])
    said = "there are several mirrors" if name is None else f"there is no mirror {name!r}"
    raise Misused(f"{said}.", code="ZT151", tries=[f"one of: {', '.join(known)}"])


def require_flows(
    configuration: Configuration, name: str | None, source: str | None = None, target: str | None = None
) -> tuple[Flow, ...]:
    """The flows of a mirror, all or those from `source` or to `target`; a stretch cluster has nothing to run."""
    mirror = require_mirror(configuration, name)
    if mirror.topology == "stretch":
        raise Misused(
            f"{mirror.called} is a stretch cluster: its brokers copy by themselves, there is no mirror to run.",
            code="ZT152",
            tries=[f"zerotail mirror plan {mirror.called}", "zerotail audit"],
        )
    flows = flows_of(configuration, mirror)
    found = tuple(flow for flow in flows if source in (None, flow.source) and target in (None, flow.target))
    if not found:
        ways = ", ".join(f"{flow.source} → {flow.target}" for flow in flows)
        raise Misused(f"{mirror.called} has no such flow; it has {ways}.", code="ZT153")
    return found


def used_clusters(flows: Iterable[Flow]) -> tuple[str, ...]:
    """The clusters that flows join, each once."""
    return tuple(dict.fromkeys(name for flow in flows for name in (flow.source, flow.target)))
