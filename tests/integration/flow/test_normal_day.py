"""From instruction rows to the receiver, on real Kafka and PostgreSQL, by the very stories that the simulator crashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, PartitionNumber, ProducerNumber, SiteName, StageName, TopicName
from zerotail.core.receiver import ReceiverClass
from zerotail.deadline import Deadline, wait_until
from zerotail.flow.emit import Sender, emit
from zerotail.flow.produce import produce
from zerotail.flow.stage import Stage, run_stage
from zerotail.flow.submit import submit
from zerotail.handler import Emission, Given, Record, State
from zerotail.kafka.log import admin_client, create_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.ports import Feed, Story
from zerotail.postgres.connection import session
from zerotail.postgres.journal import create_head
from zerotail.wiring import SiteAdapters, Stopped, drive

pytestmark = pytest.mark.servers

EAST = SiteName("east")
TOPIC, STAGE, BANK = TopicName("payments"), StageName("settle"), ChannelName("bank")
CARDS, WIRES = ProducerNumber(1), ProducerNumber(2)
FIRST = PartitionNumber(0)
LANE = Lane(BANK, FIRST)


class Settle:
    """Adds an amount to an account and tells the bank."""

    def keys(self, record: Record) -> list[str]:
        return [record.value["account"]]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        account = record.value["account"]
        state[account] = state.get(account, 0) + record.value["amount"]
        return [Emission("bank", {"account": account, "balance": state[account], "position": record.position})]


def adapters(lab: Layout) -> SiteAdapters:
    return SiteAdapters(
        EAST,
        dsn(lab.database("east")),
        dsn(lab.database("west"), seen_from="east"),
        lab.bootstrap("east"),
        {BANK: f"http://127.0.0.1:{lab.receiver_port}"},
    )


@contextmanager
def running(lab: Layout, *stories: Callable[[], Story[Any]]) -> Iterator[list[BaseException]]:
    """Each story in a thread of its own, until the block ends."""
    stop = Event()
    errors: list[BaseException] = []

    def run(make: Callable[[], Story[Any]]) -> None:
        own = adapters(lab)
        try:
            drive(make(), own, stop)
        except Stopped:
            return
        except BaseException as error:
            errors.append(error)
        finally:
            own.close()

    threads = [Thread(target=run, args=(story,)) for story in stories]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def test_every_instruction_reaches_the_receiver_once_and_in_order(lab: Layout) -> None:
    deadline = Deadline.after(60)
    create_topic(admin_client(lab.bootstrap("east")), TOPIC, 1, 1)
    with session(dsn(lab.database("east")), deadline) as primary:
        primary.execute(
            "insert into zerotail.producer values (1, 'cards', 'payments', 'settle'), (2, 'wires', 'payments', 'settle')"
        )
        create_head(primary, STAGE, FIRST, [CARDS, WIRES])
    stage = Stage(STAGE, FIRST, TOPIC, Settle(), "1", {BANK: 1})
    own = adapters(lab)
    for number in range(1, 301):
        value = json.dumps({"account": f"a{number % 7}", "amount": number}).encode()
        producer = CARDS if number % 3 else WIRES
        assert drive(submit(producer, FIRST, f"u-{number}", value), own, Event())
    own.close()
    control = ReceiverControl(lab.receiver_port)
    with running(
        lab,
        lambda: produce(Feed(CARDS, TOPIC, FIRST, STAGE), EAST),
        lambda: produce(Feed(WIRES, TOPIC, FIRST, STAGE), EAST),
        lambda: run_stage(stage, EAST),
        lambda: emit(Sender(LANE, ReceiverClass.R2, EAST)),
    ) as errors:

        def arrived() -> int:
            totals = control.totals(deadline=deadline)
            return sum(one.accepted for one in totals.partitions if one.channel == "bank")

        wait_until("all arrived", lambda: arrived() == 300 or errors, deadline)
    assert not errors
