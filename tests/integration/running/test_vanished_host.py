"""A database's host vanishes without a word and comes back: emitter and flow notice in time, and all go on."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.relays import relay_to
from support.running import Running, descendants, running_system
from zerotail.lab.layout import Layout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]
NOTICED_SECONDS = 15.0
"""What is promised."""
ESTABLISHED = "01"


def sockets_to(port: int) -> dict[str, int]:
    """Our ends of the connections to this port: by the number of the socket, the port at our side."""
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *rest = line.split()
        if int(remote.split(":")[1], 16) == port and state == ESTABLISHED:
            found[f"socket:[{rest[5]}]"] = int(local.split(":")[1], 16)
    return found


def name_of(pid: int) -> str:
    """What a process of ours is: the words behind the program's name."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return " ".join(words[words.index("run") : words.index("run") + 2]) if "run" in words else f"{words[:3]} {pid}"


def connected(system: Running, port: int) -> dict[int, set[int]]:
    """By process of the system: its connections to this port."""
    known, found = sockets_to(port), dict[int, set[int]]()
    for pid in (system.processes[-1].pid, *descendants(system.processes[-1].pid)):
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    link = os.readlink(descriptor)
                    if link in known:
                        found.setdefault(pid, set()).add(known[link])
    return found


def test_emitter_and_flow_notice_in_time_and_all_go_on_when_it_is_back(lab: Layout, tmp_path: Path) -> None:
    with (
        relay_to(lab.database("east").port) as relay,
        running_system(lab, tmp_path, "vanished", numbered=("desk",), way=relay.port) as system,
    ):
        system.start("all")
        system.wait_for_line("running stage")
        system.wait_for_line("running producers")
        system.insert(200)
        system.wait_until_all_arrived()
        before = connected(system, relay.port)
        names = {pid: name_of(pid) for pid in before}
        relay.vanish()
        began, noticed = time.monotonic(), dict[int, float]()

        def all_noticed() -> bool:
            now = connected(system, relay.port)
            for pid, ports in before.items():
                if not ports <= now.get(pid, set()) or now[pid] - ports:
                    noticed.setdefault(pid, time.monotonic() - began)
            return set(noticed) == set(before)

        with suppress(AssertionError):
            system.wait("each has given up a connection, or asked for another one", all_noticed, NOTICED_SECONDS)
        told = {names[pid]: noticed.get(pid) for pid in before}
        assert {name for name, seconds in told.items() if seconds} >= {"run emitter", "run flow"}, told
        relay.come_back()
        system.insert(200)
        system.wait_until_all_arrived()
        system.require_exactly_once()
