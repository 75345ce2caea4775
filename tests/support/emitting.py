"""An emitter process on the lab: its configuration, what it owes, and the process itself."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from support.outside import PARTITIONS, TOPIC, Judge
from zerotail.core.emission import Lane, pack_messages
from zerotail.core.identity import ChannelName, PartitionNumber, StageName
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session
from zerotail.postgres.journal import create_head

_partitions = count(PARTITIONS - 1, -1)
"""From the top: the contract's tests count from the bottom."""


@dataclass
class Emitting:
    """A stage that owes messages on some channels, and the emitter that sends them."""

    lab: Layout
    config: Path
    stage: StageName
    channels: tuple[ChannelName, ...]
    partition: PartitionNumber
    given: dict[Lane, int] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def lane(self, channel: str) -> Lane:
        """The lane of the first partition."""
        return Lane(ChannelName(channel), self.partition)

    def owe(self, values: Sequence[bytes], partition: PartitionNumber | None = None) -> None:
        """What a micro-batch does: the next numbers on every channel, in one transaction."""
        place = self.partition if partition is None else partition
        lanes = [Lane(channel, place) for channel in self.channels]
        with session(dsn(self.lab.database("east")), Deadline.after(30)) as primary, primary.transaction():
            for lane in lanes:
                primary.execute(
                    "insert into zerotail.outbox values (%s, %s, %s, %s, %s, %s, 1)",
                    (*lane, self.given.get(lane, 0) + 1, len(values), pack_messages(values)),
                )
            numbers = [[lane.channel, lane.target, self.given.get(lane, 0) + len(values)] for lane in lanes]
            primary.execute(
                "update zerotail.head set numbers = %s where stage = %s and partition = %s",
                (json.dumps(numbers), self.stage, place),
            )
        for lane in lanes:
            self.given[lane] = self.given.get(lane, 0) + len(values)

    def start(self, site: str = "east", *, wait: bool = True, take_over: bool = False) -> subprocess.Popen[bytes]:
        """Start the process; with `wait`, return when it has begun to send."""
        command = [sys.executable, "-m", "zerotail", "run", "emitter", "--config", str(self.config), "--site", site]
        process = subprocess.Popen(
            [*command, *(["--take-over"] if take_over else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.processes.append(process)
        if wait:
            assert process.stdout is not None
            said = b""
            while b"sending on" not in said:
                readable, _, _ = select.select([process.stdout], [], [], 30)
                more = os.read(process.stdout.fileno(), 10_000) if readable else b""
                assert more, said
                said += more
        return process

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def channel_settings(lab: Layout, judge: Judge) -> dict[str, dict[str, Any]]:
    """Every kind and class of channel to the outside."""
    http = {"kind": "http", "url": f"{judge.url}/batches", "timeout": "2s", "batch": 20}
    claims = {"last_number_url": f"{judge.url}/claims"}
    kafka = {"kind": "kafka", "bootstrap": lab.bootstrap("outside"), "topic": TOPIC, "timeout": "5s", "batch": 20}
    postgres = {"kind": "postgres", "dsn": dsn(lab.database("outside")), "table": "inbox", "timeout": "2s", "batch": 20}
    return {
        "http-R0": {**http, **claims, "receiver": "R0"},
        "http-R1": {**http, "receiver": "R1"},
        "http-R2": {**http, **claims, "receiver": "R2"},
        "http-R3": {**http, "receiver": "R3", "policy": "hold", "window": 5},
        "kafka-R0": {**kafka, "receiver": "R0"},
        "kafka-R1": {**kafka, "receiver": "R1"},
        "postgres-R0": {**postgres, "receiver": "R0"},
        "postgres-R1": {**postgres, "receiver": "R1"},
    }


def make_emitting(lab: Layout, judge: Judge, folder: Path, channels: Iterable[str]) -> Emitting:
    """A stage of its own with one partition, nothing owed yet, and the configuration of its emitter."""
    partition = PartitionNumber(next(_partitions))
    stage = StageName(f"emitting{partition}")
    known = channel_settings(lab, judge)
    sites = {
        name: {
            "kafka": {"bootstrap": lab.bootstrap(name)},
            "database": {"dsn": dsn(lab.database(name), seen_from="east")},
        }
        for name in ("east", "west")
    }
    content = {
        "name": "emitting",
        "sites": sites,
        "topics": {"payments": {"partitions": PARTITIONS, "replication": 1}},
        "stages": {stage: {"consumes": "payments", "handler": "shop:Settle", "emits": list(channels)}},
        "channels": {name: known[name] for name in channels},
    }
    config = folder / "zerotail.yaml"
    config.write_text(json.dumps(content))
    with session(dsn(lab.database("east")), Deadline.after(30)) as primary:
        create_head(primary, stage, partition, [])
    return Emitting(lab, config, stage, tuple(ChannelName(name) for name in channels), partition)
