"""A channel that leads to the next stage: its feed is the outbox, its acknowledgement the next stage's head."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread

import pytest

from zerotail.core.emission import Lane
from zerotail.core.identity import (
    ChannelName,
    PartitionNumber,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    TopicName,
)
from zerotail.deadline import Deadline, wait_until
from zerotail.flow.produce import produce
from zerotail.flow.stage import Stage, run_stage
from zerotail.flow.submit import submit
from zerotail.handler import Emission, Given, Record, State
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import Fed, Feed, ObserveDrained, ReadFeed, Story
from zerotail.postgres.connection import session
from zerotail.postgres.journal import create_head
from zerotail.postgres.owed import Backlog, owed_bytes, read_backlogs
from zerotail.wiring import AdapterSettings, SiteAdapters, Stopped, drive

pytestmark = pytest.mark.servers

EAST = SiteName("east")
CLEAR, LEDGER = StageName("clear"), StageName("ledger")
ORDERS, ENTRIES = TopicName("orders"), TopicName("entries")
BOOKING = ChannelName("booking")
CARDS, CLEARED = ProducerNumber(801), ProducerNumber(802)
ZERO = PartitionNumber(0)
TARGETS = (PartitionNumber(0), PartitionNumber(1))
COUNT = 60


class Clear:
    """Passes every order on, to the entry partition of its account."""

    def keys(self, record: Record) -> list[str]:
        return []

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        return [Emission(BOOKING, {"order": record.value["order"]}, key=f"account {record.value['order'] % 9}")]


class Book:
    """Counts the entries."""

    def keys(self, record: Record) -> list[str]:
        return ["entries"]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        state["entries"] = state.get("entries", 0) + 1
        return []


def feeds() -> list[Feed]:
    upstream = [Feed(CLEARED, ENTRIES, target, LEDGER, Lane(BOOKING, ZERO, target)) for target in TARGETS]
    return [Feed(CARDS, ORDERS, ZERO, CLEAR), *upstream]


@pytest.fixture
def adapters(lab: Layout) -> AdapterSettings:
    """Two stages in a chain, with nothing submitted yet."""
    client = admin_client(Cluster(lab.bootstrap("east")))
    create_topic(client, ORDERS, TopicSettings(1, 1))
    create_topic(client, ENTRIES, TopicSettings(2, 1))
    with session(dsn(lab.database("east")), Deadline.after(20)) as primary:
        primary.execute(
            "insert into zerotail.producer values (801, 'orders', 'orders', 'clear', '', 0), "
            "(802, 'cleared', 'entries', 'ledger', 'booking', 0) on conflict do nothing"
        )
        create_head(primary, CLEAR, ZERO, [CARDS])
        for target in TARGETS:
            create_head(primary, LEDGER, target, [CLEARED])
    peer = dsn(lab.database("west"), seen_from="east")
    return AdapterSettings(EAST, dsn(lab.database("east")), peer, Cluster(lab.bootstrap("east")))


def backlogs(lab: Layout) -> list[Backlog]:
    with session(dsn(lab.database("east")), Deadline.after(20)) as primary:
        return read_backlogs(primary, BOOKING)


@contextmanager
def running(settings: AdapterSettings, *stories: Story[object]) -> Iterator[None]:
    """Each story in a thread of its own, until the block ends."""
    stop = Event()

    def run(story: Story[object]) -> None:
        with closing(SiteAdapters(settings)) as own, suppress(Stopped):
            drive(story, own, stop)

    threads = [Thread(target=run, args=(story,)) for story in stories]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def truncate(settings: AdapterSettings, lane: Lane, last: Serial) -> None:
    with session(settings.dsn, Deadline.after(20)) as primary:
        primary.execute("set role zerotail_truncator")
        primary.execute(
            "delete from zerotail.outbox where channel = %s and partition = %s and target = %s "
            "and first_number + count - 1 <= %s",
            (*lane, last),
        )


def test_what_one_stage_emits_the_next_one_takes_and_its_head_is_the_acknowledgement(
    lab: Layout, adapters: AdapterSettings
) -> None:
    deadline = Deadline.after(90)
    cards, *upstream = feeds()
    clear = Stage(CLEAR, ZERO, ORDERS, Clear(), "1", {BOOKING: 2})
    books = [Stage(LEDGER, target, ENTRIES, Book(), "1", {}) for target in TARGETS]
    with closing(SiteAdapters(adapters)) as own:
        idle = own.carry_out(ObserveDrained(EAST))
        for number in range(1, COUNT + 1):
            drive(submit(CARDS, ZERO, f"o-{number}", json.dumps({"order": number}).encode()), own, Event())
        with running(adapters, produce(cards, EAST), run_stage(clear, EAST)):
            wait_until("all is cleared", lambda: sum(lane.journaled for lane in backlogs(lab)) == COUNT, deadline)
        owed = backlogs(lab)
        assert [lane.to_topic for lane in owed] == [True, True]
        assert sum(lane.messages for lane in owed) == COUNT, "nothing is acknowledged before the next stage has it"
        with session(adapters.dsn, deadline) as primary:
            assert owed_bytes(primary, CLEAR)[ZERO] == sum(lane.bytes for lane in owed) > COUNT
            assert owed_bytes(primary, CLEAR, [BOOKING]) == {}, "were the next stage itself, it would not wait for that"
        assert own.carry_out(ObserveDrained(EAST)).instructions == idle.instructions + COUNT

        stories = [produce(feed, EAST) for feed in upstream] + [run_stage(book, EAST) for book in books]
        with running(adapters, *stories):
            wait_until("all is booked", lambda: not any(lane.messages for lane in backlogs(lab)), deadline)
        done = backlogs(lab)
        assert [(lane.acknowledged, lane.bytes) for lane in done] == [(lane.journaled, 0) for lane in owed]
        assert own.carry_out(ObserveDrained(EAST)) == idle

        # What lies below the next stage's head may go: the feed goes on behind it.
        truncate(adapters, Lane(BOOKING, ZERO, TARGETS[0]), Serial(done[0].acknowledged))
        fed = own.carry_out(ReadFeed(upstream[0], None, 1000))
        assert isinstance(fed, Fed)
        assert (fed.first, fed.values) == (done[0].acknowledged + 1, [])
