"""A stage rebuilt from the journal in PostgreSQL arrives at the same hashes, state and numbers (I11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import methodcaller
from random import Random
from threading import Event

import pytest
from pyspark.sql import SparkSession

from support.epochs import live_for_ever
from support.journal import new_database
from zerotail.core.head import Head, Hint, first_head
from zerotail.core.identity import (
    Offset,
    PartitionNumber,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    TopicName,
    epoch_of,
)
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.failover.replay import Replay
from zerotail.flow.stage import Stage, Taken, place_of, take_batch
from zerotail.handler import Emission, Given, Record, State
from zerotail.kafka.cluster import Cluster
from zerotail.lab.layout import Layout
from zerotail.ports import Batch, FindPlace, HeadRead, JournalRead, ReadHead, ReadJournal
from zerotail.postgres.connection import connect, one_row, session, snapshot
from zerotail.postgres.journal import create_head
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.schema import apply_schema
from zerotail.postgres.verification import verify_partition
from zerotail.running.shadow import Shadow, Shadowed
from zerotail.spark.reconcile import reconcile
from zerotail.wiring import AdapterSettings, SiteAdapters, drive

pytestmark = pytest.mark.servers

EAST, STAGE, FIRST = SiteName("east"), StageName("settle"), PartitionNumber(0)
PRODUCERS = (ProducerNumber(1), ProducerNumber(2))
EPOCH = epoch_of(1, 0)


class Settle:
    """Speaks on two channels in turn, so that neither alone tells in which order."""

    def keys(self, record: Record) -> list[str]:
        return [record.value["account"]]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        account = record.value["account"]
        state[account] = state.get(account, 0) + record.value["amount"]
        said = [Emission("bank", {"account": account, "balance": state[account], "at": given.now})]
        if record.position % 3:
            said.insert(record.position % 2, Emission("audit", {"position": record.position}))
        return said


STAGE_OF_TEST = Stage(STAGE, FIRST, TopicName("payments"), Settle(), "1", {"bank": 1, "audit": 1})


@pytest.fixture
def database(lab: Layout) -> str:
    """A database of the test's own with instructions of two producers."""
    _, dsn = new_database(lab)
    with connect(dsn, Deadline.after(30)) as connection:
        apply_schema(connection)
        connection.execute(
            "insert into zerotail.epoch (epoch, site, timeline, durability, phase) "
            "values (%s, 'east', %s, 'gated', 'live')",
            (EPOCH, current_timeline(connection)),
        )
        live_for_ever(connection)
        connection.execute(
            "insert into zerotail.producer "
            "values (1, 'cards', 'payments', 'settle'), (2, 'wires', 'payments', 'settle')"
        )
        create_head(connection, STAGE, FIRST, PRODUCERS)
        for producer in PRODUCERS:
            for serial in range(1, 121):
                connection.execute(
                    "insert into zerotail.instruction (producer, partition, serial, id, value) "
                    "values (%s, 0, %s, %s, %s)",
                    (producer, serial, str(serial), value_of(producer, serial)),
                )
    return dsn


def value_of(producer: int, serial: int) -> bytes:
    return json.dumps({"account": f"a{serial % 5}", "amount": producer * serial}).encode()


# A transform of the wires that Spark's workers can unpickle: 17 becomes 117.
MORE = methodcaller("replace", b'"amount": ', b'"amount": 1')


def batches(random: Random, transform: Callable[[bytes], bytes] | None) -> Iterator[Batch]:
    """All records of both producers, in some order, some at a time; those of the second one transformed."""
    owners = [producer for producer in PRODUCERS for _ in range(120)]
    random.shuffle(owners)
    last = dict.fromkeys(PRODUCERS, 0)
    while owners:
        some, owners = owners[: (size := random.randint(1, 60))], owners[size:]
        names = []
        for producer in some:
            last[producer] += 1
            names.append((producer, Serial(last[producer])))
        rows = [(producer, value_of(producer, serial)) for producer, serial in names]
        values = [transform(row) if transform and producer == PRODUCERS[1] else row for producer, row in rows]
        digests = [digest_of(value) for value in values]
        yield Batch(some, [serial for _, serial in names], [EPOCH] * len(some), digests, values)


def take_all(own: SiteAdapters, transform: Callable[[bytes], bytes] | None = None) -> Head:
    """Let the stage take all batches; the head behind them."""
    read = own.carry_out(ReadHead(STAGE, FIRST))
    assert isinstance(read, HeadRead)
    place = place_of(read)
    for at, batch in enumerate(batches(Random(5), transform), 1):
        taken = drive(take_batch(STAGE_OF_TEST, place, batch, Hint("log", Offset(at)), at * 1_000), own, Event())
        assert isinstance(taken, Taken)
        place = replace(place, head=taken.head)
    assert place.head.next_position == 240
    return place.head


@pytest.mark.parametrize("transform", [None, MORE], ids=["plain", "transformed"])
def test_a_replay_of_the_stored_journal_gives_the_same_hashes_state_and_numbers(
    lab: Layout, spark: SparkSession, database: str, transform: Callable[[bytes], bytes] | None
) -> None:
    transforms = {"wires": transform} if transform else {}
    own = SiteAdapters(AdapterSettings(EAST, database, database, Cluster(lab.bootstrap("east"))), transforms)
    try:
        head = take_all(own, transform)
        replay = Replay(STAGE_OF_TEST, first_head(EPOCH, PRODUCERS))
        while True:
            journal = own.carry_out(ReadJournal(STAGE, FIRST, replay.head.segment, 2))
            assert isinstance(journal, JournalRead)
            if not journal.segments:
                break
            for segment, values in zip(journal.segments, journal.values, strict=True):
                replay.apply(segment, values)
        found = own.carry_out(FindPlace(STAGE, FIRST, PRODUCERS[0], Serial(120), 100))
        assert isinstance(found, JournalRead)
        assert found.first_position <= 240
    finally:
        own.close()
    assert replay.head.token == head.token
    assert (replay.head.output_chain, replay.head.numbers) == (head.output_chain, head.numbers)
    with session(database, Deadline.after(30)) as connection, snapshot(connection):
        assert dict(connection.execute("select key, value from zerotail.state").fetchall()) == replay.state
        assert verify_partition(connection, STAGE, FIRST, transforms).fault is None
        untransformed = verify_partition(connection, STAGE, FIRST).fault
        assert (untransformed is None) == (transform is None)
        assert journal.head.segment == SegmentNumber(head.segment)
    assert reconcile(spark, database, transforms=transforms).ok


class Another(Settle):
    """Says or does something else from a position on."""

    def __init__(self, how: str) -> None:
        self.how = how

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        said = super().apply(record, state, given)
        if record.position >= TURN and self.how == "says":
            return said[:-1]
        if record.position >= TURN and self.how == "raises":
            raise ValueError("not today")
        return said


TURN = 100


def shadowed(database: str, handler: Settle) -> Shadowed:
    """What a shadow finds that runs this handler over the whole journal."""
    with session(database, Deadline.after(30)) as connection, snapshot(connection):
        stage = replace(STAGE_OF_TEST, handler=handler)
        return Shadow.from_the_beginning(stage, {}, connection).catch_up(connection)


@pytest.fixture
def taken(lab: Layout, database: str) -> str:
    """The database, after the stage has taken everything."""
    own = SiteAdapters(AdapterSettings(EAST, database, database, Cluster(lab.bootstrap("east"))), {})
    try:
        take_all(own)
    finally:
        own.close()
    return database


def test_a_shadow_of_the_same_handler_finds_no_difference(taken: str) -> None:
    found = shadowed(taken, Settle())
    assert (found.equal, found.records, found.position, found.keys) == (True, 240, 240, 5)


@pytest.mark.parametrize(("how", "said"), [("says", "gives another output chain"), ("raises", "fails at place")])
def test_a_shadow_tells_which_positions_the_segment_holds_that_differs(taken: str, how: str, said: str) -> None:
    query = "select max(segment), max(first_position) from zerotail.segment where first_position <= %s"
    with session(taken, Deadline.after(30)) as connection:
        segment, first = one_row(connection, query, (TURN,))
        behind = one_row(connection, "select first_position from zerotail.segment where segment = %s", (segment + 1,))
    found = shadowed(taken, Another(how))
    assert found.difference is not None
    assert found.difference.startswith(f"the replay of settle partition 0 at segment {segment} {said}")
    assert found.difference.endswith(f"; it holds positions {first} to {behind[0] - 1}")
    assert (found.segment, found.position) == (segment - 1, first)


@pytest.mark.parametrize(
    ("change", "stored"),
    [("update zerotail.state set value = '17'", "b'17'"), ("delete from zerotail.state", "none")],
)
def test_a_shadow_tells_the_first_key_whose_state_differs(taken: str, change: str, stored: str) -> None:
    with session(taken, Deadline.after(30)) as connection:
        head, value = one_row(
            connection, "select (select segment from zerotail.head), value from zerotail.state where key = 'a3'"
        )
        connection.execute(f"{change} where key >= 'a3'".encode())
    found = shadowed(taken, Settle())
    assert found.difference == (
        f"the replay of settle partition 0 up to segment {head}, position 240, gives key 'a3' {value!r}; "
        f"the database has {stored}"
    )
