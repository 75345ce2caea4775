"""What a lab consists of and where each part listens: decided once by `lab up`, kept in `lab.json`, never changed.

    LAB/lab.json
    LAB/zerotail.yaml  LAB/flows.py          the example with this lab's addresses; in each site, too
    LAB/east/kafka.1  LAB/east/postgres      a folder per server: settings, data, log
    LAB/east/spark-master                    and its workers: a Spark cluster, on demand
    LAB/west/kafka.1  LAB/west/postgres
    LAB/link                                 the only way from one site to the other
    LAB/outside/receiver                     the judge; also kafka.1 and postgres of the outside, on demand

A **stretched** lab has one Kafka cluster over three sites: a node each in east, west and outside, which is where the
third vote of the controllers is. Everything else is as ever.

A **target** is what the operator names: a site, a part, or everything of a kind in a site (`east`, `east.kafka`,
`east.kafka.2`, `east.spark`, `link`).
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from zerotail.errors import Misused, Refused

SITES = ("east", "west")
OUTSIDE = "outside"
ON_DEMAND = frozenset({"outside.kafka.1", "outside.postgres"})
"""What `up` never starts."""
SPARK_WORKERS = 2
STATE_FILES = (".lab.json.new", "lab.json")
"""The state while it is being written, and the state."""
_VERSION = 3


class BrokerPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One Kafka node: clients of its own site use `port`, those of the other site come in through the link."""

    part: str
    node: int
    port: int
    controller_port: int
    across_port: int
    """Where the link delivers what comes from the other site."""
    link_port: int
    """Where the other site reaches this node: the link listens there."""

    @property
    def cluster(self) -> str:
        """`east`, `west` or `outside`."""
        return self.part.split(".", maxsplit=1)[0]


class DatabasePlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One PostgreSQL."""

    part: str
    port: int
    link_port: int

    @property
    def site(self) -> str:
        """`east`, `west` or `outside`."""
        return self.part.split(".", maxsplit=1)[0]


class SparkPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The master of the Spark cluster, or one of its workers."""

    part: str
    port: int
    page_port: int
    """Where it shows what it does, to people and, as JSON, to us."""


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole lab; `lab.json` holds exactly this."""

    version: int
    folder: str
    brokers: tuple[BrokerPlace, ...]
    databases: tuple[DatabasePlace, ...]
    spark: tuple[SparkPlace, ...]
    """The master first."""
    spark_cluster: bool
    """Whether `up` starts it with everything else."""
    stretch: bool
    """Whether the sites share one Kafka cluster, with the site as the rack."""
    link_control_port: int
    receiver_port: int
    receiver_control_port: int
    receiver_class: str
    latency_ms: float
    bindir: str | None

    @property
    def path(self) -> Path:
        """The lab's folder."""
        return Path(self.folder)

    @property
    def parts(self) -> tuple[str, ...]:
        """Every part, in the order in which a person would list them."""
        servers = [part for site in (*SITES, OUTSIDE) for part in self._servers() if part.startswith(f"{site}.")]
        return (*servers, "link", "outside.receiver")

    def _servers(self) -> list[str]:
        places: list[BrokerPlace | DatabasePlace | SparkPlace] = [*self.brokers, *self.databases, *self.spark]
        return [place.part for place in places]

    @property
    def on_demand(self) -> frozenset[str]:
        """What `up` does not start: it waits to be started by its own name."""
        waiting = ON_DEMAND - {place.part for place in self.brokers if self.stretch}
        return waiting if self.spark_cluster else waiting | {place.part for place in self.spark}

    @property
    def spark_master(self) -> str:
        """The Spark cluster, as `spark.master` names it."""
        return f"spark://127.0.0.1:{self.spark[0].port}"

    def folder_of(self, part: str) -> Path:
        """The folder of a part."""
        site, _, rest = part.partition(".")
        return self.path / site / rest if rest else self.path / site

    def broker(self, part: str) -> BrokerPlace:
        """The Kafka node of this name."""
        return next(place for place in self.brokers if place.part == part)

    def database(self, site: str) -> DatabasePlace:
        """The database of a site."""
        return next(place for place in self.databases if place.site == site)

    def spark_place(self, part: str) -> SparkPlace:
        """The master or worker of this name."""
        return next(place for place in self.spark if place.part == part)

    def brokers_at(self, site: str) -> tuple[BrokerPlace, ...]:
        """The Kafka nodes that stand in a site."""
        return tuple(place for place in self.brokers if place.cluster == site)

    def cluster(self, site: str) -> tuple[BrokerPlace, ...]:
        """The Kafka nodes of a site's cluster."""
        return self.brokers if self.stretch else self.brokers_at(site)

    def bootstrap(self, site: str, *, seen_from: str | None = None) -> str:
        """Kafka's addresses of a site, for a client in the same site or, through the link, in another one."""
        across = seen_from not in (None, site)
        return ",".join(f"127.0.0.1:{p.link_port if across else p.port}" for p in self.brokers_at(site))

    @property
    def wide_bootstrap(self) -> str:
        """The addresses of every node that `up` starts: those of a stretched cluster."""
        return ",".join(f"127.0.0.1:{p.port}" for p in self.brokers if p.part not in self.on_demand)

    def ports_of(self, part: str) -> tuple[int, ...]:
        """Where a part listens itself."""
        for broker in self.brokers:
            if broker.part == part:
                return (broker.port, broker.controller_port, broker.across_port)
        for database in self.databases:
            if database.part == part:
                return (database.port,)
        for spark in self.spark:
            if spark.part == part:
                return (spark.port, spark.page_port)
        if part == "link":
            ways_in = (*(broker.link_port for broker in self.brokers), *(place.link_port for place in self.databases))
            return (self.link_control_port, *(port for port in ways_in if port))
        return (self.receiver_port, self.receiver_control_port)


class _Version(msgspec.Struct, frozen=True):
    version: int


@dataclass(frozen=True, slots=True)
class LabSettings:
    """What `lab up` was asked for."""

    folder: Path
    brokers: int = 1
    latency_ms: float = 0.0
    receiver_class: str = "R2"
    bindir: str | None = None
    example: str = "bank"
    partitions: int = 2
    spark_cluster: bool = False
    stretch: bool = False


def ports_needed(settings: LabSettings) -> int:
    """How many ports a lab takes."""
    sites = 2 * (4 * settings.brokers + 2)
    outside = 3 + 1
    spark = 2 * (1 + SPARK_WORKERS)
    return sites + outside + spark + 1 + 2  # and the link's control port, the receiver's and the judge's


def plan_layout(settings: LabSettings, ports: list[int]) -> Layout:
    """Give each part its ports."""
    free = iter(ports)
    nodes = [(site, node) for site in SITES for node in range(1, settings.brokers + 1)] + [(OUTSIDE, 1)]
    brokers = tuple(
        BrokerPlace(
            part=f"{site}.kafka.{node}",
            node=number if settings.stretch else node,
            port=next(free),
            controller_port=next(free),
            across_port=next(free),
            link_port=next(free) if site != OUTSIDE else 0,
        )
        for number, (site, node) in enumerate(nodes, start=1)
    )
    databases = tuple(
        DatabasePlace(part=f"{site}.postgres", port=next(free), link_port=next(free) if site != OUTSIDE else 0)
        for site in (*SITES, OUTSIDE)
    )
    workers = (f"spark-worker-{number}" for number in range(1, SPARK_WORKERS + 1))
    spark = tuple(
        SparkPlace(part=f"{SITES[0]}.{name}", port=next(free), page_port=next(free))
        for name in ("spark-master", *workers)
    )
    return Layout(
        version=_VERSION,
        folder=str(settings.folder),
        brokers=brokers,
        databases=databases,
        spark=spark,
        spark_cluster=settings.spark_cluster,
        stretch=settings.stretch,
        link_control_port=next(free),
        receiver_port=next(free),
        receiver_control_port=next(free),
        receiver_class=settings.receiver_class,
        latency_ms=settings.latency_ms,
        bindir=settings.bindir,
    )


def parts_of(layout: Layout, target: str) -> list[str]:
    """The parts that a target names; `Misused` with a suggestion when there is no such target."""
    found = [part for part in layout.parts if target in _names_of(part)]
    if found:
        return found
    known = all_targets(layout)
    close = difflib.get_close_matches(target, known, n=1)
    raise Misused(
        f"there is no target {target!r}{f'; did you mean {close[0]}?' if close else '.'}",
        code="ZT201",
        tries=[f"one of: {', '.join(known)}"],
    )


def all_targets(layout: Layout) -> list[str]:
    """Every name that a target can have."""
    names: dict[str, None] = {}
    for part in layout.parts:
        names.update(dict.fromkeys(_names_of(part)))
    return list(names)


def _names_of(part: str) -> list[str]:
    """The targets that mean this part: itself, and it up to any dot or dash."""
    return [part[: mark.start()] for mark in re.finditer(r"[.-]|$", part)]


def write_layout(layout: Layout) -> None:
    """Write `lab.json` in one rename: it is whole or it is not there."""
    scratch, final = (layout.path / name for name in STATE_FILES)
    scratch.write_bytes(msgspec.json.format(msgspec.json.encode(layout), indent=2) + b"\n")
    os.replace(scratch, final)


def find_layout(folder: Path) -> Layout | None:
    """The layout of the lab in this folder; None when there is no lab, `Refused` when its file is damaged."""
    path = folder / "lab.json"
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.", code="ZT203") from error
    try:
        # What another version wrote may have any form; its number stands in all of them.
        same_version = msgspec.json.decode(content, type=_Version).version == _VERSION
        layout = msgspec.json.decode(content, type=Layout) if same_version else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(
            f"{path} is damaged ({error}).",
            code="ZT203",
            why="Without it nobody knows which server listens where.",
            tries=[f"zerotail lab down --dir {folder}    # ends whatever still runs there"],
        ) from error
    if layout is None or layout.folder != str(folder):
        raise Refused(
            f"{path} was written by another version or for another folder.",
            code="ZT203",
            tries=[f"zerotail lab down --dir {folder}"],
        )
    return layout


def require_layout(folder: Path) -> Layout:
    """The layout of the lab in this folder; `Refused` when there is none."""
    layout = find_layout(folder)
    if layout is None:
        raise Refused(f"there is no lab in {folder}.", code="ZT202", tries=[f"zerotail lab up --dir {folder}"])
    return layout
