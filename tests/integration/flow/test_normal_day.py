"""From instruction rows to the receiver on real Kafka and PostgreSQL, by the stories that the simulator crashes."""

from __future__ import annotations

import json
from threading import Event

import pytest

from support.flow import EAST, PATIENCE_SECONDS, new_system
from zerotail.core.identity import PartitionNumber
from zerotail.core.receiver import ReceiverClass
from zerotail.deadline import Deadline, wait_until
from zerotail.flow.emit import Sender, emit
from zerotail.flow.produce import produce
from zerotail.flow.stage import run_stage
from zerotail.flow.submit import submit
from zerotail.lab.layout import Layout
from zerotail.ports import Feed
from zerotail.wiring import SiteAdapters, drive

pytestmark = pytest.mark.servers
FIRST = PartitionNumber(0)


def test_every_submitted_instruction_reaches_the_receiver_once_and_in_order(lab: Layout) -> None:
    system = new_system(lab, "day", 701, partitions=1)
    client = SiteAdapters(system.adapters)
    for number in range(1, 101):
        value = json.dumps({"account": f"account {number % 7}", "amount": number}).encode()
        producer = system.producers[number % 3 == 0]
        serial = drive(submit(producer, FIRST, f"id {number}", value, attempts=100), client, Event())
        assert serial == drive(submit(producer, FIRST, f"id {number}", value, attempts=100), client, Event()), (
            "asked twice"
        )
        assert isinstance(serial, int)
    client.close()
    feeds = [Feed(producer, system.topic, FIRST, system.stage) for producer in system.producers]
    with system.running(
        lambda: produce(feeds[0], EAST),
        lambda: produce(feeds[1], EAST),
        lambda: run_stage(system.stages[FIRST], EAST),
        lambda: emit(Sender(system.lanes[0], ReceiverClass.R2, EAST)),
    ) as ended:
        wait_until("all arrived", lambda: system.accepted() == 100 or ended, Deadline.after(PATIENCE_SECONDS))
        assert ended == []
    system.require_exactly_once(100)
