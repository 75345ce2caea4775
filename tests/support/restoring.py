"""Disasters on real servers: a journal in a database of its own, and a topic in any state."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

from support.disasters import refill_by_others
from support.journal import FIRST, SECOND, SETTLE, Books, Taken, new_database
from zerotail.core.identity import Epoch, ProducerNumber, Serial, SiteName, TopicName, epoch_of
from zerotail.core.record import Header, digest_of, encode
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.deadline import Deadline
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.kafka.partition_log import PartitionLog
from zerotail.kafka.plain_writer import write_plainly
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import connect
from zerotail.postgres.schema import apply_schema
from zerotail.restore import Place, Wish, plan_restore, run_restore
from zerotail.restore.place import read_recorded
from zerotail.restore.refill import proven_records
from zerotail.restore.report import PartitionReport

EPOCH = epoch_of(1, 0)
SHAPE = TopicSettings(partitions=1, copies=1)
_names = itertools.count(1)
Kept = tuple[int, int, bytes]
"""Producer, serial, value."""


@dataclass(frozen=True)
class Disaster:
    """A journal and a topic."""

    place: Place
    taken: tuple[Taken, ...]

    def run(self, strategy: str, *, cache: int | None = None, into: str | None = None) -> PartitionReport:
        wish = Wish(RestoreStrategy(strategy), cache_messages=cache, into=None if into is None else TopicName(into))
        return run_restore(plan_restore(self.place, wish))

    def run_collecting(self, strategy: str, cache: int | None = None) -> tuple[PartitionReport, list[bytes]]:
        values: list[bytes] = []
        wish = Wish(RestoreStrategy(strategy), cache_messages=cache)
        report = run_restore(
            plan_restore(self.place, wish), consume=lambda batch: values.extend(batch.column("value").to_pylist())
        )
        return report, values

    def content(self, topic: str | None = None) -> list[Kept]:
        """What a reader of committed records sees, in the order of the log."""
        log = PartitionLog(self.place.cluster, TopicName(topic or self.place.topic), FIRST)
        return [
            (producer, serial, value)
            for batch in log.open(None)
            for producer, serial, value in zip(
                batch.producers.tolist(),
                batch.serials.tolist(),
                batch.payload.column("value").to_pylist(),
                strict=True,
            )
        ]


def cluster_of(lab: Layout) -> Cluster:
    return Cluster(f"127.0.0.1:{lab.cluster(SiteName('east'))[0].port}")


def make_disaster(lab: Layout, seed: int, segments: int = 12, most: int = 60) -> Disaster:
    """A journal of some segments of two producers; the topic does not exist yet."""
    return make_disasters(lab, seed, SHAPE, segments, most)[0]


def make_disasters(lab: Layout, seed: int, shape: TopicSettings, segments: int = 12, most: int = 60) -> list[Disaster]:
    """The same for each partition of a topic, one or two."""
    chance = Random(seed)
    _, dsn = new_database(lab)
    partitions = (FIRST, SECOND)[: shape.partitions]
    with connect(dsn, Deadline.after(30)) as session:
        apply_schema(session)
        books = Books(session, seed)
        for _ in range(segments):
            for partition in partitions:
                books.settle(partition, chance.randint(1, most), chance.randint(0, most), emitting=False)
    topic = TopicName(f"disaster-{next(_names)}-{seed}")
    return [
        Disaster(
            Place(cluster_of(lab), dsn, SiteName("east"), SETTLE, topic, partition, shape),
            tuple(books.taken[SETTLE, partition]),
        )
        for partition in partitions
    ]


def write_log(place: Place, records: Iterable[Kept], epoch: Epoch = EPOCH) -> None:
    """Append records to the topic, as anybody might."""
    ensure_topic(admin_client(place.cluster), place.topic, place.shape)
    write_plainly(
        place.cluster,
        place.topic,
        place.partition,
        (
            (value, encode(Header(epoch, ProducerNumber(producer), Serial(serial), digest_of(value))))
            for producer, serial, value in records
        ),
    )


def write_disordered(place: Place, seed: int) -> int:
    """Fill the log of a place as independent producers do: everything that its journal has, in another order, some of
    it twice; how many records.
    """
    recorded = read_recorded(place)
    written: dict[tuple[ProducerNumber, Serial], tuple[bytes, bytes]] = {}
    for some in proven_records(place, recorded, {}):
        names = zip(some.producers.tolist(), some.serials.tolist(), strict=True)
        written |= zip(names, zip(some.values, some.headers, strict=True), strict=True)
    ensure_topic(admin_client(place.cluster), recorded.topic, place.shape)
    again = refill_by_others(seed, tuple(written), mean_run=15, repeats=0.2)
    write_plainly(place.cluster, recorded.topic, place.partition, [written[name] for name in again])
    return len(written)


def disorder(taken: Sequence[Taken], seed: int, *, mean_run: int = 40, repeats: float = 0.2) -> list[Kept]:
    """The same records as independent producers write them again, some of them twice."""
    values = {(producer, serial): value for producer, serial, value in taken}
    names = refill_by_others(seed, tuple((p, s) for p, s, _ in taken), mean_run, repeats)
    return [(*name, values[name]) for name in names]


def configured(disaster: Disaster, folder: Path) -> str:
    """A configuration file for a disaster; its path."""
    place = disaster.place
    site = {"kafka": {"bootstrap": place.cluster.bootstrap}, "database": {"dsn": place.dsn}}
    other = {"kafka": {"bootstrap": "127.0.0.1:9"}, "database": {"dsn": "host=127.0.0.1 port=9"}}
    producer = {"topic": str(place.topic)}
    content = {
        "name": "disaster",
        "sites": {"east": site, "west": other},
        "topics": {str(place.topic): {"partitions": 1, "replication": 1, "min_insync": 1}},
        "producers": {"cards": producer, "wires": producer},
        "stages": {"settle": {"consumes": str(place.topic), "handler": "flows:Settle"}},
    }
    file = folder / "zerotail.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)
