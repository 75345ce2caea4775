"""Receivers of every kind and class, as real servers: how to reach them, freeze them, and see what reached them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from zerotail.channel.http import HttpReceiver
from zerotail.channel.kafka import HEADER, Emitted, KafkaReceiver
from zerotail.channel.postgres import PostgresReceiver
from zerotail.channel.receiver import Receiver
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, Epoch, Incarnation, PartitionNumber, SiteName, TopicName
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.cursor import SETTINGS
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.kafka.topic import Place
from zerotail.lab.database import dsn
from zerotail.lab.fault import continue_target, kill_target, start_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.lab.part import accepts_connections
from zerotail.lab.receiver import MessageAttempt, ReceiverControl, Verdict
from zerotail.ports import ClaimAtReceiver
from zerotail.postgres.connection import session
from zerotail.postgres.receipt import insert_into, receiver_schema

EAST = SiteName("east")
TOPIC = TopicName("statements")
PARTITIONS = 64
_partitions: dict[str, Iterator[int]] = {}

Arrived = list[tuple[int, bytes]]


def new_partition(channel: str) -> PartitionNumber:
    """A partition that no other test uses on this channel."""
    return PartitionNumber(next(_partitions.setdefault(channel, count())))


@dataclass
class Judge:
    """A receiver process of our own: a channel for each class, named like it."""

    port: int
    control_port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, on what it knew before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "config.json"
        channels = {f"http-{one.value}": one.value for one in ReceiverClass}
        settings = {"port": self.port, "control_port": self.control_port, "folder": str(self.folder)}
        config.write_bytes(msgspec.json.encode({**settings, "channels": channels}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zerotail.lab.receiver", "--config", config], stdout=subprocess.DEVNULL
        )
        wait_until("the receiver listens", lambda: accepts_connections(self.port), Deadline.after(20))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kill -9."""
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Killed, and started again behind the block."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    @property
    def control(self) -> ReceiverControl:
        """The judge's side."""
        return ReceiverControl(self.control_port)

    @property
    def url(self) -> str:
        """The sender's side."""
        return f"http://127.0.0.1:{self.port}"

    def arrived(self, lane: Lane) -> Arrived:
        """Numbers and digests that had an effect, in order."""
        return [
            (attempt.number, bytes.fromhex(attempt.digest))
            for attempt in self.control.attempts(deadline=Deadline.after(20))
            if isinstance(attempt, MessageAttempt)
            and (attempt.channel, attempt.partition) == (lane.channel, lane.partition)
            and attempt.verdict is Verdict.ACCEPTED
        ]


@dataclass(frozen=True)
class Outside:
    """One kind and class of receiver."""

    name: str
    receiver: ReceiverClass
    open: Callable[[Lane, float], Receiver]
    arrived: Callable[[Lane], Arrived]
    """What had an effect, in order: the number, and the value or its digest."""
    freeze: Callable[[], object]
    thaw: Callable[[], object]
    down: Callable[[], AbstractContextManager[None]]
    """Its server is killed, and is there again behind the block, with what it knew."""

    def lane(self) -> Lane:
        """A lane of its own for one test."""
        return Lane(ChannelName(self.name), new_partition(self.name))

    def numbers(self, lane: Lane) -> list[int]:
        """The numbers that had an effect, in order."""
        return [number for number, _ in self.arrived(lane)]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Its server stands still; connections stay open."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()


def http_outside(judge: Judge, receiver: ReceiverClass) -> Outside:
    """The laboratory's receiver, as one of its classes."""

    def open_it(_lane: Lane, seconds: float) -> Receiver:
        url = judge.url
        return HttpReceiver(f"{url}/batches", EAST, claims_url=f"{url}/claims", timeout_seconds=seconds)

    return Outside(
        f"http-{receiver.value}",
        receiver,
        open_it,
        judge.arrived,
        lambda: judge.signal(signal.SIGSTOP),
        lambda: judge.signal(signal.SIGCONT),
        judge.down,
    )


def kafka_outside(lab: Layout, receiver: ReceiverClass) -> Outside:
    """A topic outside, with a reader that sees what is committed and, for R1, drops repeated numbers."""
    bootstrap = lab.bootstrap("outside")

    def open_it(lane: Lane, seconds: float) -> Receiver:
        place = Place({"bootstrap.servers": bootstrap}, TOPIC, lane.partition, seconds)
        return KafkaReceiver(lane, place, transactional=receiver is ReceiverClass.R0)

    def arrived(lane: Lane) -> Arrived:
        read = read_topic(bootstrap, lane)
        if receiver is ReceiverClass.R0:
            return read
        first: dict[int, bytes] = {}
        for number, value in read:
            first.setdefault(number, value)
        return list(first.items())

    return Outside(
        f"kafka-{receiver.value}",
        receiver,
        open_it,
        arrived,
        lambda: stop_target(lab, "outside.kafka"),
        lambda: continue_target(lab, "outside.kafka"),
        lambda: killed_target(lab, "outside.kafka"),
    )


@contextmanager
def killed_target(lab: Layout, target: str) -> Iterator[None]:
    """A server of the lab is killed, and started again behind the block."""
    assert kill_target(lab, target).bit
    try:
        yield
    finally:
        start_target(lab, target)


def _emitted(header: bytes | None) -> Emitted | None:
    """What a message says of itself; None for one of a stranger, which other tests leave in the topic."""
    try:
        return None if header is None else msgspec.json.decode(header, type=Emitted)
    except msgspec.ValidationError:
        return None


def read_topic(bootstrap: str, lane: Lane) -> Arrived:
    """Numbers and values of a lane in the topic outside, as a reader with `read_committed` sees them."""
    consumer = Consumer({**SETTINGS, "bootstrap.servers": bootstrap, "isolation.level": "read_committed"})
    found: Arrived = []
    try:
        consumer.assign([TopicPartition(TOPIC, lane.partition, OFFSET_BEGINNING)])
        deadline = Deadline.after(20)
        while not deadline.passed:
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return found
                headers: dict[str, Any] = dict(message.headers() or ())
                said = _emitted(headers.get(HEADER))
                if said is not None and (said.channel, said.partition, said.target) == lane:
                    found.append((said.number, message.value() or b""))
    finally:
        consumer.close()
    raise AssertionError("the end of the topic was not reached")


def postgres_outside(lab: Layout, receiver: ReceiverClass) -> Outside:
    """A database outside."""
    place = dsn(lab.database("outside"))

    def open_it(_lane: Lane, seconds: float) -> Receiver:
        receipts = receiver is ReceiverClass.R0
        effect = insert_into("inbox", drop_repeats=not receipts)
        named = "inbox", insert_into("inbox", drop_repeats=not receipts, named=True)
        return PostgresReceiver(place, effect, receipts=receipts, timeout_seconds=seconds, named=named)

    def arrived(lane: Lane) -> Arrived:
        with session(place, Deadline.after(20)) as connection:
            return connection.execute(
                "select number, value from inbox where channel = %s and partition = %s order by arrived_at, number",
                (lane.channel, lane.partition),
            ).fetchall()

    return Outside(
        f"postgres-{receiver.value}",
        receiver,
        open_it,
        arrived,
        lambda: stop_target(lab, "outside.postgres"),
        lambda: continue_target(lab, "outside.postgres"),
        lambda: killed_target(lab, "outside.postgres"),
    )


def start_servers(lab: Layout) -> None:
    """Kafka and PostgreSQL of the outside, with what a receiver needs there; harmless when they run."""
    for target in ("outside.kafka", "outside.postgres"):
        start_target(lab, target)
    deadline = Deadline.after(20)
    client = admin_client(Cluster(lab.bootstrap("outside")))
    create_topic(client, TOPIC, TopicSettings(PARTITIONS, 1))

    def has_leaders() -> bool:
        partitions = client.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions.values()
        return len(partitions) == PARTITIONS and all(one.leader >= 0 for one in partitions)

    wait_until("the topic has leaders", has_leaders, deadline)
    warm = kafka_outside(lab, ReceiverClass.R0)
    lane = warm.lane()
    with closing(warm.open(lane, 20.0)) as sender:
        first = ClaimAtReceiver(lane, Epoch(256), Incarnation(1))
        wait_until("the cluster takes transactions", lambda: isinstance(sender.claim(first), Welcome), deadline)
    with session(dsn(lab.database("outside")), deadline) as connection:
        connection.execute(receiver_schema().encode())


def wait_for(what: str, probe: Callable[[], bool], seconds: float = 30.0) -> float:
    """Wait for a condition; answers how long it took."""
    began = time.monotonic()
    wait_until(what, probe, Deadline.after(seconds), every_seconds=0.05)
    return time.monotonic() - began
