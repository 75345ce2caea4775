"""A database's host vanishes without a word and comes back: everybody notices in time, and all go on."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.relays import Relay, relay_to
from support.running import Running, descendants, running_system, trickle
from zerotail.lab.connections import connections_to, have_given_up
from zerotail.lab.layout import Layout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]
NOTICED_SECONDS = 15.0
"""What is promised."""
WATCHED = {"automatic": True, "after": "1h"}
"""A watcher that is at work, and takes over nothing here."""


def name_of(pid: int) -> str:
    """What a process of ours is: the words behind the program's name."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return " ".join(words[words.index("run") : words.index("run") + 2]) if "run" in words else f"{words[:3]} {pid}"


def connected(system: Running, port: int) -> dict[int, set[int]]:
    """By process of the system: its connections to this port."""
    pids = [pid for one in system.processes for pid in (one.pid, *descendants(one.pid))]
    return connections_to(port, pids)


def noticed_by(system: Running, relay: Relay) -> dict[str, float | None]:
    """Let the host behind this relay vanish: after how many seconds each process that waits for it has given up."""
    before = connected(system, relay.port)
    names = {pid: name_of(pid) for pid in before}
    relay.vanish()
    began, noticed = time.monotonic(), dict[int, float]()

    def all_noticed() -> bool:
        for pid in have_given_up(before, connected(system, relay.port)):
            noticed.setdefault(pid, time.monotonic() - began)
        return set(noticed) == set(before)

    with suppress(AssertionError):
        system.wait("each has given up a connection", all_noticed, NOTICED_SECONDS)
    relay.come_back()
    return {names[pid]: noticed.get(pid) for pid in before}


def test_everybody_notices_in_time_and_goes_on_when_it_is_back(lab: Layout, tmp_path: Path) -> None:
    """First the host of the active site's database, then the one of the other site's."""
    with (
        relay_to(lab.database("east").port) as east,
        relay_to(lab.database("west").port) as west,
        running_system(
            lab, tmp_path, "vanished", numbered=("desk",), ways={"east": east.port, "west": west.port}, takeover=WATCHED
        ) as system,
    ):
        system.start("all")
        system.wait_for_line("running stage")
        system.wait_for_line("running producers")
        system.insert(200)
        system.wait_until_all_arrived()
        with trickle(system, 5, 0.2, locally=True):
            told = noticed_by(system, east)
            assert {name for name, seconds in told.items() if seconds} >= {"run emitter", "run flow"}, told
            system.wait_for_progress()
        system.start("follower", site="west")
        system.start("watcher", site="west")
        system.wait_for_line("watching east")
        system.wait("it follows", lambda: bool(system.words("follower")))
        with trickle(system, 5, 0.2, locally=True):
            told = noticed_by(system, west)
            assert {name for name, seconds in told.items() if seconds} >= {"run emitter", "run follower"}, told
            system.wait_for_progress()
        system.wait_until_all_arrived()
        system.require_exactly_once()
        assert all(process.poll() is None for process in system.processes), "nobody has ended"
