"""A topic, a group and its members, with real Kafka and PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer

from support.consumer_process import TABLES
from support.output import wait_for_line
from support.running import is_alive
from zerotail.core.identity import TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session

PATIENCE_SECONDS = 90.0
SESSION_MS = 6_000
"""The shortest that brokers allow."""


@dataclass
class Consumers:
    """One group on one topic."""

    lab: Layout
    name: str
    partitions: int = 4
    sent: int = 0
    members: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bootstrap = self.lab.bootstrap("east", seen_from="east")
        self.dsn = dsn(self.lab.database("east"))
        settings = TopicSettings(self.partitions, 1, 1, None)
        ensure_topic(admin_client(Cluster(self.bootstrap)), TopicName(self.name), settings)
        self.sql(*[(table,) for table in TABLES])
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 2, "log_level": 0})
        self._server = subprocess.Popen(
            [sys.executable, "-m", "support.consumer_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def sql(self, *statements: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last."""
        with session(self.dsn, Deadline.after(PATIENCE_SECONDS)) as database:
            for text, *values in statements:
                done = database.execute(text.encode(), values)
            return done.fetchall() if done.description else []

    def start(self, **settings: str) -> int:
        """Start a member."""
        asked = {
            "bootstrap": self.bootstrap,
            "group": self.name,
            "topic": self.name,
            "dsn": self.dsn,
            "settings": {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "1000", **settings},
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        pid = int(wait_for_line(self._server, "started", seconds=PATIENCE_SECONDS).split()[1])
        self.members.append(pid)
        return pid

    def send(self, count: int, value: str = "plain", *, partition: int | None = None) -> None:
        """Append records, evenly or to one partition."""
        for number in range(count):
            place = number % self.partitions if partition is None else partition
            self._producer.produce(self.name, value.encode(), partition=place)
        assert self._producer.flush(PATIENCE_SECONDS) == 0
        self.sent += count

    def results(self) -> int:
        return int(self.sql(("select count(*) from result where topic = %s", self.name))[0][0])

    def wait_for_results(self, count: int) -> None:
        wait_until(f"{count} results", lambda: self.results() >= count, Deadline.after(PATIENCE_SECONDS))

    def workers(self) -> set[int]:
        """Who has results."""
        return {pid for (pid,) in self.sql(("select distinct worker from result where topic = %s", self.name))}

    def require_exactly_once(self) -> None:
        """Every record that was sent has one result, in order."""
        rows = self.sql(("select partition, record from result where topic = %s order by number", self.name))
        assert len(rows) == len(set(rows)) == self.sent
        for partition in range(self.partitions):
            mine = [record for place, record in rows if place == partition]
            assert mine == list(range(len(mine)))

    def kill(self, pid: int) -> None:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
        wait_until("it is gone", lambda: not is_alive(pid), Deadline.after(PATIENCE_SECONDS))
        self.members.remove(pid)

    def end(self) -> None:
        for pid in list(self.members):
            self.kill(pid)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(PATIENCE_SECONDS)
