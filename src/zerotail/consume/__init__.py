"""Consume a topic with results that are exactly once, in a service that is no Spark stage.

`places` says how a result and the place behind it belong together, and what a store has to offer; `consuming` is the
loop; `liveness` judges any group by the trend of its positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING, Literal

from zerotail.consume.consuming import Consuming, Held, Record, Work
from zerotail.consume.places import Elsewhere, Failed, Fenced, Lost, Moved, Partition, Place, Places

if TYPE_CHECKING:
    from zerotail.postgres.connection import Connection

__all__ = [
    "Consuming",
    "Elsewhere",
    "Failed",
    "Fenced",
    "Held",
    "Lost",
    "Moved",
    "Partition",
    "Place",
    "Places",
    "Record",
    "Work",
    "consume",
]


def consume(
    bootstrap: str,
    group: str,
    topics: Sequence[str],
    dsn: str,
    work: Work[Connection],
    *,
    start: Literal["beginning", "end"] = "beginning",
    settings: Mapping[str, str] | None = None,
    stop: Event | None = None,
) -> None:
    """Work on every record of the topics, in one transaction with the place behind it, until told to stop.

    `start` is for partitions without a place; `settings` are the Kafka client's, security for example.
    """
    from zerotail.kafka.cluster import Cluster
    from zerotail.kafka.member import GroupMember
    from zerotail.postgres.places import PostgresPlaces

    stop = stop or Event()
    cluster = Cluster(bootstrap, tuple(sorted((settings or {}).items())))
    with closing(PostgresPlaces(dsn)) as places:
        places.create_table()
        with closing(GroupMember(cluster, group, topics, from_beginning=start == "beginning")) as member:
            consuming = Consuming(member, places, group, work)
            while not stop.is_set():
                consuming.round()
