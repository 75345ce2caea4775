"""A journal written as stages write it, by the same transaction, without Kafka: two stages, one behind the other.

cards (1), wires (2) ─→ settle, partitions 0 and 1 ─→ bank
                                                  └─→ moves ─→ post, partition 0 (producers 3, 4)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from support.epochs import live_for_ever
from support.standings import EAST, WEST
from zerotail.core.emission import LaneKey, number_emissions
from zerotail.core.head import Head, advance
from zerotail.core.identity import ChannelName, PartitionNumber, ProducerNumber, Serial, StageName, Timeline, epoch_of
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import Commit
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.journal import commit_batch, create_head, find_head
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.schema import apply_schema
from zerotail.postgres.site import store_numbers

SETTLE, POST = StageName("settle"), StageName("post")
CARDS, WIRES, MOVES_OF_0, MOVES_OF_1 = map(ProducerNumber, (1, 2, 3, 4))
BANK, MOVES = ChannelName("bank"), ChannelName("moves")
FIRST, SECOND = PartitionNumber(0), PartitionNumber(1)

Taken = tuple[ProducerNumber, Serial, bytes]
"""A record by name, with its value."""
_names = itertools.count(1)


class Books:
    """Writes instructions and segments, and remembers what it wrote."""

    def __init__(self, connection: Connection, seed: int = 1) -> None:
        self.connection = connection
        self.random = Random(seed)
        self.taken: dict[tuple[StageName, PartitionNumber], list[Taken]] = {}
        self._rows: dict[tuple[ProducerNumber, PartitionNumber], list[bytes]] = {}
        self._decided_at = 1_000_000
        timeline = current_timeline(connection)
        self._timeline = Timeline(timeline)
        connection.execute(
            "insert into zerotail.epoch (epoch, site, timeline, durability, phase) "
            "values (%s, 'east', %s, 'gated', 'live')",
            (epoch_of(1, 0), timeline),
        )
        live_for_ever(connection)
        store_numbers(connection, (EAST, WEST))
        connection.execute(
            "insert into zerotail.producer values (1, 'cards', 'payments', 'settle', '', 0), "
            "(2, 'wires', 'payments', 'settle', '', 0), (3, 'settle/0', 'moves', 'post', 'moves', 0), "
            "(4, 'settle/1', 'moves', 'post', 'moves', 1)"
        )
        for partition in (FIRST, SECOND):
            create_head(connection, SETTLE, partition, [CARDS, WIRES])
        create_head(connection, POST, FIRST, [MOVES_OF_0, MOVES_OF_1])

    def submit(self, producer: ProducerNumber, partition: PartitionNumber, count: int) -> None:
        """Store instructions."""
        rows = self._rows.setdefault((producer, partition), [])
        new = [b"%d/%d/%d" % (producer, partition, len(rows) + step) for step in range(1, count + 1)]
        with (
            self.connection.cursor() as cursor,
            cursor.copy("copy zerotail.instruction (producer, partition, serial, id, value) from stdin") as copy,
        ):
            for serial, value in enumerate(new, len(rows) + 1):
                copy.write_row((producer, partition, serial, f"{partition}-{serial}", value))
        rows += new

    def settle(self, partition: PartitionNumber, cards: int, wires: int, *, emitting: bool = True) -> None:
        """Submit, and take all of it as one segment of `settle`, in some order."""
        owners = [CARDS] * cards + [WIRES] * wires
        self.random.shuffle(owners)
        self.submit(CARDS, partition, cards)
        self.submit(WIRES, partition, wires)
        said: list[tuple[LaneKey, bytes]] = []
        records = self._next(SETTLE, partition, owners)
        if emitting:
            said = [((BANK, FIRST), b"pay " + value) for _, _, value in records]
            said += [((MOVES, FIRST), b"move " + value) for _, serial, value in records if serial % 2]
        self._take(SETTLE, partition, records, said)

    def post(self) -> None:
        """Take everything that settle has emitted so far as one segment of `post`."""
        head = self.head(POST, FIRST)
        owners: list[ProducerNumber] = []
        for producer, source in ((MOVES_OF_0, FIRST), (MOVES_OF_1, SECOND)):
            last = self.head(SETTLE, source).numbers.get((MOVES, FIRST), 0)
            owners += [producer] * (last - head.vector.get(producer, 0))
        self.random.shuffle(owners)
        self._take(POST, FIRST, self._next(POST, FIRST, owners), [])

    def head(self, stage: StageName, partition: PartitionNumber) -> Head:
        head = find_head(self.connection, stage, partition)
        assert head is not None
        return head

    def _next(self, stage: StageName, partition: PartitionNumber, owners: Sequence[ProducerNumber]) -> list[Taken]:
        vector = dict(self.head(stage, partition).vector)
        records = []
        for owner in owners:
            vector[owner] = Serial(vector.get(owner, 0) + 1)
            records.append((owner, vector[owner], self._rows[owner, partition][vector[owner] - 1]))
        return records

    def _take(
        self,
        stage: StageName,
        partition: PartitionNumber,
        records: Sequence[Taken],
        said: Sequence[tuple[LaneKey, bytes]],
    ) -> None:
        head = self.head(stage, partition)
        self._decided_at += 1_000
        lanes: dict[LaneKey, list[bytes]] = {}
        for lane, value in said:
            lanes.setdefault(lane, []).append(value)
        owed = number_emissions(head.numbers, lanes)
        moved, segment = advance(
            head,
            producers=[producer for producer, _, _ in records],
            serials=[serial for _, serial, _ in records],
            digests=[digest_of(value) for _, _, value in records],
            decided_at=self._decided_at,
            version="1",
            owed=owed,
            hint=None,
        )
        effect = Commit(stage, partition, head.token, self._timeline, moved, segment, {}, owed)
        with self.connection.transaction():
            commit_batch(self.connection, effect)
        self.taken.setdefault((stage, partition), []).extend(records)
        producer = MOVES_OF_0 if partition == FIRST else MOVES_OF_1
        self._rows.setdefault((producer, FIRST), []).extend(lanes.get((MOVES, FIRST), ()))


def write_a_day(connection: Connection) -> Books:
    """Some segments of everything: two partitions, silent segments, one producer alone, a stage behind a stage."""
    books = Books(connection)
    for cards, wires, emitting in ((30, 20, True), (5, 0, True), (10, 90, False), (64, 64, True), (0, 1, True)):
        books.settle(FIRST, cards, wires, emitting=emitting)
        books.settle(SECOND, wires + 1, cards, emitting=emitting)
    books.post()
    books.settle(FIRST, 3, 4)
    books.post()
    return books


def local(database: str) -> str:
    """A DSN whose commits do not wait for the other site."""
    return f"{database} options='-c synchronous_commit=local'"


def new_database(lab: Layout, template: str = "template1") -> tuple[str, str]:
    """A database of a test's own in east's server, empty or a copy: its name and its DSN."""
    name = f"books_{next(_names)}"
    with connect(local(dsn(lab.database("east"))), Deadline.after(30)) as server:
        server.execute(f"create database {name} template {template}".encode())
    return name, local(dsn(lab.database("east"))).replace("dbname=postgres", f"dbname={name}")


@contextmanager
def superuser(database: str) -> Iterator[Connection]:
    """A session of somebody whom no trigger stops."""
    with connect(database, Deadline.after(30)) as session:
        session.execute("set session_replication_role = replica")
        yield session


def day_of(lab: Layout) -> tuple[str, str, Books]:
    """A database with a day's journal in it: its name, its DSN, and what was written."""
    name, database = new_database(lab)
    with connect(database, Deadline.after(30)) as session:
        apply_schema(session)
        books = write_a_day(session)
        assert one_row(session, "select count(*) from zerotail.segment")[0] == 13
    return name, database, books
