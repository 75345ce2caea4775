"""What the world consists of, and its database: a log of commits with a flushed prefix."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from zerotail.core.identity import (
    ChannelName,
    Epoch,
    Incarnation,
    PartitionNumber,
    ProducerName,
    Serial,
    SiteName,
    StageName,
)
from zerotail.drill.history import (
    AnyEvent,
    Event,
    FinalSegment,
    hop_producer,
)

Stream = tuple[ChannelName, PartitionNumber, PartitionNumber]
Place = tuple[StageName, PartitionNumber]

SITES = (SiteName("east"), SiteName("west"))
FIRST, SECOND = StageName("settle"), StageName("ledger")
HOP = ChannelName("moves")


@dataclass
class Row:
    producer: ProducerName
    partition: PartitionNumber
    serial: Serial
    id: str
    digest: str


Item: TypeAlias = Row | FinalSegment | Epoch
"""What can be committed."""


@dataclass
class Submission:
    id: str
    producer: ProducerName
    partition: PartitionNumber
    digest: str
    row: Row | None = None
    lsn: int = 0


@dataclass
class Sender:
    """An emitter: which claim it has, what it released, and what it believes the receiver has."""

    site: SiteName
    epoch: Epoch
    incarnation: Incarnation
    released: dict[Stream, int] = field(default_factory=lambda: defaultdict(int))
    sent: dict[Stream, int] = field(default_factory=lambda: defaultdict(int))
    known: dict[Stream, list[str]] = field(default_factory=dict)
    """For a zombie: the digests it had when it was cut off."""

    @property
    def process(self) -> str:
        return f"emitter-{self.site}-{self.epoch}-{self.incarnation}"


class Database:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[AnyEvent] = []
        self.clock = 0
        self.sequences: dict[str, int] = defaultdict(int)
        r = self.random
        self.two_stages = r.random() < 0.5
        self.partitions = [PartitionNumber(p) for p in range(r.randint(1, 2))]
        self.producers = [ProducerName(name) for name in "ABC"[: r.randint(1, 3)]]
        classes = r.sample(["R0", "R1", "R2", "R3"], r.randint(1, 3))
        self.channels = {ChannelName(f"bank-{c}"): c for c in classes}
        self.takes: dict[StageName, list[ProducerName]] = {FIRST: list(self.producers)}
        self.stage_of = dict.fromkeys(self.channels, FIRST)
        if self.two_stages:
            self.takes[SECOND] = [hop_producer(FIRST, p) for p in self.partitions]
            if r.random() < 0.5:
                self.takes[SECOND].append(ProducerName("manual"))
                self.producers.append(ProducerName("manual"))
            self.stage_of[ChannelName("audit")] = SECOND
            self.channels[ChannelName("audit")] = r.choice(["R0", "R1", "R2", "R3"])
        self.window = r.choice([1, 2, None])
        self.claims_by_partition = r.random() < 0.5
        self.nobody_knows_what_was_sent = False
        # The database: commits with their place in the log, and how far the other site has flushed.
        self.log: list[tuple[int, Item]] = []
        self.lsn = 100
        self.flushed = 100
        self.in_force = True
        self.mode = "gated"
        self.active = 0
        self.generation = 0
        self.epoch = Epoch(0)
        self.timeline = 1
        self.deposed_log: list[tuple[int, Item]] | None = None
        self.poisoned: set[tuple[Place, ProducerName, Serial, str]] = set()
        self.received: dict[Stream, int] = defaultdict(int)
        self.claims: dict[ChannelName, tuple[int, int]] = {}
        self.pending: list[Submission] = []
        self.unknown: list[Submission] = []
        self.zombies: list[Sender] = []
        self.held: set[tuple[Stream, int]] = set()
        self.submitted = 0
        self.incarnation = 0
        self.faults = 0
        self._fold()

    # Saying and committing.

    def say(self, recorder: str, event: Event) -> None:
        self.clock += self.random.randint(1, 3)
        self.sequences[recorder] += 1
        stamped = replace(event, time=self.clock, recorder=recorder, sequence=self.sequences[recorder])
        self.events.append(stamped)  # type: ignore[arg-type]

    def commit(self, item: Item) -> int:
        self.lsn += self.random.randint(1, 50)
        self.log.append((self.lsn, item))
        self._apply(self.lsn, item)
        return self.lsn

    def _fold(self) -> None:
        self.rows: dict[tuple[ProducerName, PartitionNumber], list[Row]] = defaultdict(list)
        self.row_of: dict[str, tuple[int, Row]] = {}
        self.journal: dict[Place, list[FinalSegment]] = defaultdict(list)
        self.vector: dict[tuple[Place, ProducerName], int] = defaultdict(int)
        self.owed: dict[Stream, list[tuple[str, int]]] = defaultdict(list)
        for lsn, item in self.log:
            self._apply(lsn, item)

    def _apply(self, lsn: int, item: Item) -> None:
        if isinstance(item, Row):
            self.rows[item.producer, item.partition].append(item)
            self.row_of[item.id] = (lsn, item)
        elif isinstance(item, FinalSegment):
            place = (item.stage, item.partition)
            self.journal[place].append(item)
            for run in item.runs:
                self.vector[place, run.producer] += run.count
            for emission in item.emissions:
                stream = (emission.channel, item.partition, emission.target_partition)
                self.owed[stream].append((emission.digest, lsn))

    @property
    def site(self) -> SiteName:
        return SITES[self.active]

    @property
    def durable(self) -> int:
        return self.lsn if self.mode == "exposed" else self.flushed

    def flush(self) -> None:
        if self.in_force:
            self.flushed = self.random.randint(self.flushed, self.lsn)

    def _digest(self, text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:16]
