"""Mirrors as a user runs them, and both logs read with a plain client that knows nothing of mirrors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import Layout
from zerotail.lab.process import session_members

PATIENCE_SECONDS = 150.0
PROVENANCE = "zt-from"
_FIRST_TIMESTAMP = int(time.time() * 1000) - 3_600_000
"""An hour ago: much older records would be deleted by retention."""

Seen = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]
"""Key, value, timestamp and headers of a record."""


def configuration(
    layout: Layout, folder: Path, mirrors: str, seen_from: str = "west", further: Sequence[str] = ()
) -> Path:
    """A configuration with mirrors between the lab's sites, which see each other through the link."""
    clusters = "".join(f'  {name}: {{bootstrap: "{layout.bootstrap(name)}"}}\n' for name in further)
    addresses = {site: layout.bootstrap(site, seen_from=seen_from) for site in ("east", "west")}
    path = folder / "mirrors.yaml"
    path.write_text(
        "name: mirrors\nsites:\n"
        + "".join(
            f'  {site}: {{kafka: {{bootstrap: "{address}"}}, database: {{dsn: "host=127.0.0.1 port={port}"}}}}\n'
            for port, (site, address) in enumerate(addresses.items(), 1)
        )
        + (f"clusters:\n{clusters}" if clusters else "")
        + f"mirrors:\n{mirrors}"
    )
    return path


def make_topic(layout: Layout, site: str, topic: str, partitions: int = 1, **settings: str) -> None:
    """Make a topic at a site, and wait until it can be used."""
    client = AdminClient({"bootstrap.servers": layout.bootstrap(site)})
    named = {name.replace("_", "."): value for name, value in settings.items()}
    client.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result()
    wait_until(f"{topic} is there", lambda: partition_count(layout, site, topic) == partitions, Deadline.after(20))


def grow_topic(layout: Layout, site: str, topic: str, partitions: int) -> None:
    """Give a topic more partitions."""
    client = AdminClient({"bootstrap.servers": layout.bootstrap(site)})
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result()


def delete_topic(layout: Layout, site: str, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    client = AdminClient({"bootstrap.servers": layout.bootstrap(site)})
    client.delete_topics([topic])[topic].result()
    wait_until(f"{topic} is gone", lambda: partition_count(layout, site, topic) == 0, Deadline.after(20))


def partition_count(layout: Layout, site: str, topic: str) -> int:
    """How many partitions a topic has; 0 when there is none."""
    client = AdminClient({"bootstrap.servers": layout.bootstrap(site)})
    found = client.list_topics(timeout=10).topics.get(topic)
    return len(found.partitions) if found else 0


def write(layout: Layout, site: str, topic: str, values: Sequence[bytes | None], partition: int = 0) -> None:
    """Append records with a key, a timestamp of their own and headers, of which some are odd."""
    client = Producer({"bootstrap.servers": layout.bootstrap(site), "enable.idempotence": True, "linger.ms": 5})
    failed: list[Any] = []
    for number, value in enumerate(values):
        headers: list[Any] = [("trace", b"%d" % number), ("odd", None), ("odd", b"")] if number % 3 == 0 else []
        key = None if number % 5 == 0 else b"key %d" % (number % 7)
        client.produce(
            topic,
            value,
            key,
            partition,
            lambda error, _: failed.append(error) if error else None,
            timestamp=_FIRST_TIMESTAMP + number,
            headers=headers,
        )
    client.flush(30)
    assert not failed, failed


def read(
    layout: Layout,
    site: str,
    topic: str,
    partition: int = 0,
    *,
    with_origin: bool = False,
    start: int = OFFSET_BEGINNING,
) -> list[Seen]:
    """All committed records of a partition; without the header that a mirror adds, unless it is wanted."""
    client = Consumer(
        {
            "bootstrap.servers": layout.bootstrap(site),
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    client.assign([TopicPartition(topic, partition, start)])
    found: list[Seen] = []
    deadline = Deadline.after(30)
    while not deadline.passed:
        for message in client.consume(1000, 0.2):
            error = message.error()
            if error is None:
                given: Any = message.headers() or ()
                headers = tuple((name, value) for name, value in given if with_origin or name != PROVENANCE)
                found.append((message.key(), message.value(), message.timestamp()[1], headers))
            elif error.code() == KafkaError._PARTITION_EOF:
                client.close()
                return found
    raise AssertionError(f"{topic}/{partition} at {site} cannot be read")


def end_offset(layout: Layout, site: str, topic: str, partition: int = 0) -> int:
    """The offset behind the last record."""
    client = Consumer({"bootstrap.servers": layout.bootstrap(site), "group.id": "reader"})
    try:
        return client.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1]
    finally:
        client.close()


@dataclass
class RunningMirror:
    """A `zerotail mirror run` process."""

    process: subprocess.Popen[bytes]
    log: Path
    state: Path
    killed: list[str] = field(default_factory=list)

    def said(self) -> str:
        """Everything it has told so far."""
        return self.log.read_text()

    def wait_until_said(self, words: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when it has told this; one that has ended will not."""

        def heard() -> bool:
            if words not in self.said() and self.process.poll() is not None:
                raise AssertionError(f"it has ended with {self.process.returncode}, without {words!r}:\n{self.said()}")
            return words in self.said()

        wait_until(f"{words!r} in {self.log}", heard, Deadline.after(seconds))

    def kill(self, what: str) -> int:
        """Kill -9 one of its processes, once there is one: the driver, the JVM, a Python worker, or MirrorMaker 2.

        Answers its pid.
        """
        # Workers come with the first task, which is behind the first line that is said.
        pid = max(wait_until(f"there is a {what}", lambda: self.find(what), Deadline.after(30)))
        os.kill(pid, signal.SIGKILL)
        self.killed.append(what)
        if what == "driver":
            self.process.wait(30)
            self.end()
        return pid

    def find(self, what: str) -> set[int]:
        """The pids of its processes of this kind."""
        if what == "driver":
            return {self.process.pid} if self.process.poll() is None else set()
        words = {
            "jvm": b"org.apache.spark.deploy.SparkSubmit",
            "worker": b"zerotail.spark.daemon",
            "maker": b"org.apache.kafka.connect.mirror.MirrorMaker",
        }[what]
        found = set()
        for pid in session_members(self.process.pid):
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                parent = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b") ", 1)[1].split()[1]
                above = Path(f"/proc/{int(parent)}/cmdline").read_bytes().replace(b"\0", b" ")
                # A worker is a fork of the daemon, and looks like it.
                if words in line and (what != "worker" or words in above):
                    found.add(pid)
        return found

    def end(self) -> None:
        """End everything of it."""
        with suppress(ProcessLookupError):
            self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(40)
        for pid in session_members(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)


def start_mirror(config: Path, *arguments: str) -> RunningMirror:
    """Start it beside its configuration."""
    state = config.parent / "state"
    log = config.parent / f"run-{len(list(config.parent.glob('run-*')))}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "zerotail", "mirror", "run", *arguments, "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "ZEROTAIL_STATE": str(state)},
        )
    return RunningMirror(process, log, state)


@contextmanager
def running_mirror(config: Path, *arguments: str) -> Iterator[RunningMirror]:
    """A mirror for the length of a block."""
    running = start_mirror(config, *arguments)
    try:
        yield running
    finally:
        running.end()


def wait_until_copied(layout: Layout, topic: str, copy: str, partitions: int = 1, source: str = "east") -> None:
    """Return when the target has as many records as the source, in every partition."""
    target = "west" if source == "east" else "east"
    for partition in range(partitions):
        wanted = len(read(layout, source, topic, partition))

        def is_there(partition: int = partition, wanted: int = wanted) -> bool:
            if not partition_count(layout, target, copy) > partition:
                return False
            return len(read(layout, target, copy, partition)) >= wanted

        wait_until(
            f"{wanted} records of {topic}/{partition} are at {target}",
            is_there,
            Deadline.after(PATIENCE_SECONDS),
            every_seconds=0.3,
        )
