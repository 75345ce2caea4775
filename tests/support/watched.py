"""Two sites to look at: a database of a test's own in the lab, with one stage, and the configuration of both sites."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from support.command import PROGRAM, Said, call
from support.epochs import live_for_ever
from support.journal import new_database
from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName, StageName, epoch_of
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import connect
from zerotail.postgres.journal import create_head
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.schema import apply_schema
from zerotail.postgres.site import store_numbers

CARDS = ProducerNumber(1)


SHOP = """
class Settle:
    def keys(self, record):
        return []

    def apply(self, record, state, given):
        return []
"""
"""The code beside the configuration: a handler that has nothing to do."""


@dataclass(frozen=True)
class Watched:
    """What `zerotail status` is pointed at."""

    lab: Layout
    config: Path
    east: str
    """East's database, with commits that do not wait for west."""

    @property
    def command(self) -> list[str]:
        return [*PROGRAM, "status", "--config", str(self.config)]

    def status(self, *arguments: str) -> tuple[Said, float]:
        """What the command says, and how long it took."""
        began = time.monotonic()
        said = call("status", "--config", str(self.config), *arguments)
        return said, time.monotonic() - began

    def submit(self, count: int, *, seconds_ago: float = 0.0) -> None:
        """Instructions that nobody takes."""
        with connect(self.east, Deadline.after(30)) as primary:
            primary.execute(
                "insert into zerotail.instruction (producer, partition, serial, id, value, submitted_at) "
                "select %s, 0, n, n::text, 'value', clock_timestamp() - make_interval(secs => %s) "
                "from generate_series(1, %s) as n",
                (CARDS, seconds_ago, count),
            )


def make_watched(lab: Layout, folder: Path, *, stalled_after: str = "60s") -> Watched:
    """A stage with one partition that has taken nothing yet, in a first epoch of east."""
    name, east = new_database(lab)
    stage = StageName("settle")
    with connect(east, Deadline.after(30)) as primary:
        apply_schema(primary)
        primary.execute(
            "insert into zerotail.epoch (epoch, site, timeline, durability, phase) "
            "values (%s, 'east', %s, 'gated', 'live')",
            (epoch_of(1, 0), current_timeline(primary)),
        )
        live_for_ever(primary)
        store_numbers(primary, (SiteName("east"), SiteName("west")))
        primary.execute("insert into zerotail.producer values (%s, 'cards', 'payments', %s)", (CARDS, stage))
        create_head(primary, stage, PartitionNumber(0), [CARDS])
    sites = {
        site: {
            "kafka": {"bootstrap": lab.bootstrap(site, seen_from="east")},
            "database": {"dsn": dsn(lab.database(site), seen_from="east").replace("dbname=postgres", f"dbname={name}")},
        }
        for site in ("east", "west")
    }
    content = {
        "name": "watched",
        "sites": sites,
        "topics": {"payments": {"partitions": 1, "replication": 1}},
        "producers": {"cards": {"topic": "payments"}},
        "stages": {stage: {"consumes": "payments", "handler": "shop:Settle", "stalled_after": stalled_after}},
    }
    (folder / "shop.py").write_text(SHOP)
    config = folder / "zerotail.yaml"
    config.write_text(json.dumps(content))
    return Watched(lab, config, east)
