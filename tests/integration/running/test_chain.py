"""Two stages in a chain, run as a user runs them: a bank that settles, and a ledger behind it that others feed, too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.arena import Arena
from support.running import PATIENCE_SECONDS, Running, find_process, is_alive, reconcile
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber
from zerotail.deadline import Deadline
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client
from zerotail.lab.example import EXAMPLE_FILES
from zerotail.lab.layout import Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.postgres.connection import session
from zerotail.postgres.outbox import read_messages

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

PARTITIONS = 2
COUNT = 8_000
RATE = 800
BETWEEN = "moves"


@pytest.fixture(scope="module")
def own_lab(arena: Arena) -> Layout:
    """A new lab with the example of two stages."""
    return arena.renewed("two-stages", PARTITIONS)


@pytest.fixture
def chain(own_lab: Layout, tmp_path: Path) -> Iterator[Running]:
    """The example at its active site, with nothing running yet."""
    for name in EXAMPLE_FILES:
        shutil.copyfile(own_lab.path / "east" / name, tmp_path / name)
    system = Running(own_lab, tmp_path, "chain")
    yield system
    system.end()


def zerotail(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "zerotail", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def answer_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    printed, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, printed
    answer: dict[str, Any] = json.loads(printed)
    return answer


def received(system: Running, channel: str) -> list[PartitionTotals]:
    control = ReceiverControl(system.lab.receiver_control_port)
    found = control.totals(deadline=Deadline.after(PATIENCE_SECONDS)).partitions
    return [totals for totals in found if totals.channel == channel]


def accepted(system: Running, channel: str) -> int:
    return sum(totals.accepted for totals in received(system, channel))


def wait_until_more_statements(system: Running) -> None:
    before = accepted(system, "statements")
    system.wait("statements go on", lambda: accepted(system, "statements") > before + 300)


def require_once_and_in_order(system: Running, channel: str, count: int) -> None:
    totals = received(system, channel)
    assert sum(one.accepted for one in totals) == count
    for one in totals:
        assert (one.accepted, one.missing, one.out_of_order, one.different_bytes) == (one.distinct, 0, 0, 0)


def answers_to_the_bank(system: Running) -> list[dict[str, Any]]:
    """What the bank was told of each payment."""
    with session(system.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        lanes = [Lane(ChannelName("bank"), PartitionNumber(number)) for number in range(PARTITIONS)]
        return [
            json.loads(message)
            for lane in lanes
            for message in read_messages(primary, lane, EmissionNumber(0), 10 * COUNT)
        ]


def delete_the_topic_between(system: Running) -> None:
    """It is gone with everything in it."""
    client = admin_client(Cluster(system.lab.bootstrap("east")))
    client.delete_topics([BETWEEN])[BETWEEN].result()


def kill_emitter(system: Running, root: int) -> None:
    pid = find_process(root, "zerotail run emitter")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    system.wait("the emitter is gone", lambda: not is_alive(pid), 10)


def test_every_payment_and_fee_gets_through_both_stages_once_whatever_happens_between_them(chain: Running) -> None:
    process = chain.start("all")
    for stage in ("settle", "ledger"):
        chain.wait_for_line(f"running stage {stage}")
    folder = str(chain.lab.path)
    load = zerotail("lab", "load", "--dir", folder, "--rate", str(RATE), "--count", str(COUNT), "--json")
    for fault in (delete_the_topic_between, partial(kill_emitter, root=process.pid), delete_the_topic_between):
        wait_until_more_statements(chain)
        fault(chain)
    wait_until_more_statements(chain)
    inserted = answer_of(load)["by_producer"]
    payments = inserted["cards"] + inserted["wires"]
    chain.wait("the bank has an answer to each payment", lambda: accepted(chain, "bank") >= payments)
    settled = sum(answer["ok"] for answer in answers_to_the_bank(chain))
    assert 0 < settled < payments, "the load refuses nothing, or everything"
    lines = settled + inserted["fees"]
    chain.wait("each move has its line", lambda: accepted(chain, "statements") >= lines)
    assert process.poll() is None
    require_once_and_in_order(chain, "bank", payments)
    require_once_and_in_order(chain, "statements", lines)
    verified = answer_of(zerotail("journal", "verify", "--config", f"{folder}/zerotail.yaml", "--json"))
    assert verified["ok"]
    chain.folder = chain.lab.path
    reconcile(chain)
