"""The standby follows the journal in its order, through kills, and notices a handler that would come to something
else."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from support.command import call
from support.running import Running, descendants, running_system
from zerotail.core.identity import PartitionNumber, StageName
from zerotail.core.record import HEADER_NAME, decode
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session
from zerotail.postgres.segment import all_rows

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

Record = tuple[int, int]
"""Producer and serial."""


def followed(system: Running) -> list[Record]:
    """The records of the standby's topic, in offset order."""
    place = TopicPartition(system.topic, 0, 0)
    client = Consumer(
        {"bootstrap.servers": system.lab.bootstrap("west"), "group.id": "test", "enable.auto.commit": False}
    )
    try:
        if system.topic not in client.list_topics(timeout=10).topics:
            return []
        _, end = client.get_watermark_offsets(place, timeout=10)
        client.assign([place])
        found: list[Record] = []
        while len(found) < end:
            for message in client.consume(1000, 0.1):
                headers = dict(message.headers() or ())
                header = decode(headers[HEADER_NAME])  # type: ignore[arg-type]
                found.append((header.producer, header.serial))
        return found
    finally:
        client.close()


def journaled(system: Running) -> list[Record]:
    """The same by the journal of the active site."""
    with session(system.database, Deadline.after(30)) as connection:
        rows = all_rows(connection, StageName(system.stage_name), PartitionNumber(0))
        return [(owner, first + n) for row in rows for owner, first, count in row.runs() for n in range(count)]


def without_repeats(records: list[Record]) -> list[Record]:
    return list(dict.fromkeys(records))


def wait_until_followed(system: Running) -> None:
    system.wait("the standby's topic has everything", lambda: set(followed(system)) == set(journaled(system)))


def kill(system: Running) -> None:
    """The process that was started last, with everything below it, of which something may end just now."""
    process = system.processes.pop()
    for pid in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def follower_says(system: Running) -> dict[str, Any]:
    return system.words("follower").get(0, {})


def test_the_standby_follows_in_order_through_kills_and_tells_what_a_replay_would_do_otherwise(
    lab: Layout, tmp_path: Path
) -> None:
    with running_system(lab, tmp_path, "followed") as system:
        system.start("all")
        system.wait_for_line("running producers")
        system.insert(700)
        system.wait_until_all_arrived()

        system.start("follower", "--shadow", site="west")
        wait_until_followed(system)
        kill(system)
        system.insert(700)
        system.wait_until_all_arrived()
        system.start("follower", "--shadow", site="west")
        wait_until_followed(system)
        system.insert(300)
        system.wait_until_all_arrived()
        wait_until_followed(system)
        assert without_repeats(followed(system)) == journaled(system)
        system.wait("it says that nothing is missing", lambda: follower_says(system).get("doing") == "working")
        assert follower_says(system)["counters"]["missing"] == 0
        kill(system)

        replayed = call("journal", "replay", "--config", str(system.config), "--site", "west", "--json")
        assert replayed.answer("journal-replay")["replays"][0]["records"] == len(journaled(system))

        elsewhere = tmp_path / "other-code"
        elsewhere.mkdir()
        (elsewhere / "zerotail.yaml").write_text(system.config.read_text())
        code = tmp_path / f"flows_{system.name}.py"
        changed = code.read_text().replace('+ record.value["amount"]', '+ record.value["amount"] + 1')
        (elsewhere / code.name).write_text(changed)
        wrong = call("journal", "replay", "--config", str(elsewhere / "zerotail.yaml"), "--site", "west")
        assert wrong.code == 1
        assert "segment 1 gives another output chain" in wrong.out
        system.folder = elsewhere
        system.start("follower", "--shadow", site="west")
        system.wait("the shadow has begun", lambda: "running follower" in system.log.read_text())

        def differs() -> bool:
            system.insert(10)
            return follower_says(system).get("doing") == "stopped"

        system.wait("the other handler is noticed", differs)
        assert "gives another output chain" in follower_says(system)["reason"]
