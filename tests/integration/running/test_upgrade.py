"""A pair of before goes on with the programs of today: those first, then the tables; nothing is lost or doubled."""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.before import ACCEPTED, NAME, STOPPED, load_database, records
from support.command import call
from support.running import Running
from zerotail.core.identity import TopicName
from zerotail.core.record import HEADER_NAME
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.nightly


@dataclass
class Upgraded(Running):
    """The pair of before: its tables in a database of their own, its topic, and what its receiver has taken."""

    own: str = ""

    @property
    def database(self) -> str:
        return super().database.replace("dbname=postgres", f"dbname={self.own}")

    def content(self) -> dict[str, Any]:
        content = super().content()
        for site in content["sites"].values():
            site["database"]["dsn"] = site["database"]["dsn"].replace("dbname=postgres", f"dbname={self.own}")
        return content

    def fill(self) -> None:
        """Kafka and the receiver as they were."""
        create_topic(admin_client(Cluster(self.lab.bootstrap("east"))), TopicName(self.topic), TopicSettings(2, 1))
        producer = Producer({"bootstrap.servers": self.lab.bootstrap("east")})
        for record in records():
            headers: list[tuple[str, str | bytes | None]] = [(HEADER_NAME, bytes.fromhex(record["zt"]))]
            producer.produce(self.topic, record["value"].encode(), partition=record["partition"], headers=headers)
        assert producer.flush(60) == 0
        for partition, last in ACCEPTED.items():
            messages = [{"number": number, "body": base64.b64encode(b"{}").decode()} for number in range(1, last + 1)]
            sender = {"channel": self.channel, "partition": partition, "epoch": 256, "incarnation": 1, "site": "east"}
            said = urllib.request.urlopen(
                f"http://127.0.0.1:{self.lab.receiver_port}/batches",
                json.dumps({**sender, "messages": messages}).encode(),
            )
            assert said.status == 200

    def owed(self) -> int:
        """Messages that everything in the tables comes to: one of each instruction that nobody skipped."""
        ((count, waiting),) = self.sql(
            "select (select count(*) from zerotail.instruction) - "
            "(select count(*) from zerotail.poison where decision = 'skip'), (select count(*) from zerotail.submission)"
        )
        return int(count) if not waiting else -1


def test_the_programs_first_the_tables_after_and_the_site_goes_on(warm_lab: Layout, tmp_path: Path) -> None:
    system = Upgraded(
        warm_lab,
        tmp_path,
        NAME,
        partitions=2,
        producers=("cards", "wires"),
        numbered=("notes",),
        own=load_database(warm_lab)[0],
    )
    system.write()
    system.fill()
    where = ("--config", str(system.config))
    try:
        process = system.start("all")
        system.wait("they say what they wait for", lambda: "zerotail schema apply" in system.log.read_text())
        assert process.poll() is None
        assert any("zerotail schema apply" in reason for reason in system.status()["reasons"])
        assert system.accepted() == sum(ACCEPTED.values())
        applied = call("schema", "apply", *where, "--site", "east")
        assert applied.code == 0, applied.err
        system.wait("rows are numbered", lambda: system.sql("select count(*) from zerotail.submission") == [(0,)])
        producer, partition, serial, digest = STOPPED
        (listed,) = call("poison", "list", *where, "--json").answer("poison-list")["records"]
        assert (listed["producer_name"], listed["partition"], listed["serial"]) == (producer, partition, serial)
        decided = call(
            "poison",
            "skip",
            system.stage_name,
            str(partition),
            producer,
            str(serial),
            "--digest",
            digest,
            "--by",
            "anna",
            *where,
        )
        assert decided.code == 0, decided.err
        system.wait("all has arrived", lambda: system.accepted() == system.owed())
        assert system.counted("stage", "foreign") == system.counted("stage", "other_installation") == 0
        assert system.counted("stage", "repeats") >= 60, "what lies in Kafka from before was read, and known"
        for one in system.totals():
            assert (one.accepted, one.missing, one.out_of_order, one.different_bytes) == (one.distinct, 0, 0, 0)
        verified = call("journal", "verify", *where, "--site", "east")
        assert verified.code == 0, verified.out + verified.err
    finally:
        system.end()
