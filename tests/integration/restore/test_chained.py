"""A stage behind a stage, and another writer between them: each order is restored by the journal of its own reader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.arena import Arena
from support.command import Said, call
from support.restoring import write_disordered
from support.running import PATIENCE_SECONDS, Running
from zerotail.code import find_code_beside
from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client, remove_topic
from zerotail.lab.database import dsn
from zerotail.lab.fault import kill_target
from zerotail.lab.layout import Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.postgres.connection import session
from zerotail.postgres.owed import observe_drained
from zerotail.restore.configured import places_of

pytestmark = pytest.mark.nightly
COUNT = 4_000
STAGES = {"payments": "settle", "moves": "ledger"}


@dataclass
class Chain:
    """The example of two stages; east works, west has topics in another order."""

    lab: Layout
    system: Running
    state: Path

    def config(self, site: str) -> str:
        return str(self.lab.path / site / "zerotail.yaml")

    def call(self, *words: str) -> Said:
        environment = {"ZEROTAIL_CONFIG": self.config("west"), "ZEROTAIL_STATE": str(self.state)}
        return call(*words, environment=environment)

    def load(self, count: int) -> None:
        """Instructions of all three producers, at whichever site is active."""
        words = ("lab", "load", "--dir", str(self.lab.path), "--rate", "2000", "--count", str(count), "--json")
        done = subprocess.run([sys.executable, "-m", "zerotail", *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr

    def totals(self, channel: str) -> list[PartitionTotals]:
        control = ReceiverControl(self.lab.receiver_control_port)
        found = control.totals(deadline=Deadline.after(PATIENCE_SECONDS)).partitions
        return [one for one in found if one.channel == channel]

    def wait_until_all_arrived(self, site: str) -> None:
        """Everything that the site's stages owe the outside is there, once and in order."""

        def drained() -> bool:
            with session(dsn(self.lab.database(site)), Deadline.after(PATIENCE_SECONDS)) as connection:
                left = observe_drained(connection)
            return not (left.instructions or left.emissions)

        self.system.wait("everything is taken and acknowledged", drained)
        for channel in ("bank", "statements"):
            for one in self.totals(channel):
                assert one.accepted > 0
                assert (one.accepted, one.missing, one.out_of_order, one.different_bytes) == (one.distinct, 0, 0, 0)

    def restore(self, topic: str, strategy: str, *words: str) -> list[dict[str, Any]]:
        """`zerotail restore run` at west, through the handler."""
        asked = ("--topic", topic, "--site", "west", "--strategy", strategy, "--rebuild-state", *words, "--json")
        said = self.call("restore", "run", *asked)
        assert said.code == 0, said.err
        return list(said.answer("restore-report")["partitions"])


@pytest.fixture(scope="module")
def chain(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = Path(tmp_path_factory.mktemp("chained"))
    layout = arena.renewed("two-stages", 2)
    system = Running(layout, layout.path / "east", "chained")
    find_code_beside(layout.path / "west" / "zerotail.yaml")
    try:
        yield Chain(layout, system, folder / "state")
    finally:
        system.end()


def same_journal(chain: Chain, stage: str) -> bool:
    return recorded(chain, stage) == recorded(chain, stage, "east")


def recorded(chain: Chain, stage: str, site: str = "west") -> dict[int, str]:
    """The chain of each partition, as the head has it."""
    query = "select partition, encode(chain, 'hex') from zerotail.head where stage = %s"
    with session(dsn(chain.lab.database(site)), Deadline.after(PATIENCE_SECONDS)) as connection:
        return dict(connection.execute(query.encode(), (stage,)).fetchall())


def test_each_topic_comes_back_to_its_own_order_by_every_strategy(chain: Chain) -> None:
    process = chain.system.start("all")
    for stage in STAGES.values():
        chain.system.wait_for_line(f"running stage {stage}")
    chain.load(COUNT)
    chain.wait_until_all_arrived("east")
    process.terminate()
    process.wait(PATIENCE_SECONDS)
    configuration = load(chain.config("west"))
    for topic, stage in STAGES.items():
        wait_until("west has the journal", partial(same_journal, chain, stage), Deadline.after(PATIENCE_SECONDS))
        for place in places_of(configuration, SiteName("west"), topic):
            write_disordered(place, 5 + place.partition)
    for topic, stage in STAGES.items():
        found = [
            chain.restore(topic, "unbounded"),
            chain.restore(topic, "bounded", "--cache", "20"),
            chain.restore(topic, "ordered-refill", "--into", f"{topic}-in-order"),
            chain.restore(topic, "sort", "--engine", "spark"),
        ]
        chains = recorded(chain, stage)
        for reports in found:
            assert {one["plan"]["partition"]: one["chain"] for one in reports} == chains
            assert [one["state_digest"] for one in reports] == [one["state_digest"] for one in found[0]]
            assert all(one["state_digest"] for one in reports)


def test_with_the_topic_between_them_lost_both_stages_go_on_after_a_takeover(chain: Chain) -> None:
    remove_topic(admin_client(Cluster(chain.lab.bootstrap("west"))), "moves")
    assert kill_target(chain.lab, "east").bit
    stated = ("--to", "west", "--strategy", "unbounded", "--rebuild-state")
    plan = json.loads(chain.call("takeover", "plan", *stated, "--json").out)
    said = chain.call("takeover", "run", *stated, "--plan", plan["id"], "--confirm", "west", "--json")
    assert said.code == 0, said.err + said.out
    report = said.answer("takeover-report")
    moves = sum(one["journaled"] for one in planned(chain, "moves"))
    assert report["refilled"] == moves > 0
    chain.system.folder = chain.lab.path / "west"
    chain.system.start("all", site="west")
    for stage in STAGES.values():
        chain.system.wait_for_line(f"running stage {stage}")
    chain.load(COUNT)
    chain.wait_until_all_arrived("west")


def planned(chain: Chain, topic: str) -> list[dict[str, Any]]:
    said = chain.call("restore", "plan", "--topic", topic, "--site", "west", "--json")
    return list(said.answer("restore-plan")["partitions"])
