"""`zerotail check --group` on live groups."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from support.command import call
from support.consumers import Consumers
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import Layout

_names = itertools.count(1)


@pytest.fixture
def group(lab: Layout) -> Iterator[Consumers]:
    consumers = Consumers(lab, f"checked-{next(_names)}-{os.getpid()}", partitions=1)
    yield consumers
    consumers.end()


def check(group: Consumers, watch_seconds: int = 4) -> dict[str, Any]:
    said = call(
        *("check", "--group", group.name, "--bootstrap", group.bootstrap),
        *("--watch", str(watch_seconds), "--json"),
    )
    answer = said.answer("check-group")
    assert said.code == (0 if answer["ok"] else 1)
    verdict: dict[str, Any] = answer["verdict"]
    return verdict


@pytest.mark.nightly
def test_a_group_is_idle_then_slow_then_stalled_then_stopped(group: Consumers) -> None:
    member = group.start()
    group.send(100)
    group.wait_for_results(100)
    idle = check(group)
    assert (idle["liveness"], idle["lag"], idle["members"]) == ("idle", 0, 1)
    # More than it can do while it is watched: it moves all the time, and what is left shrinks.
    group.send(200, "nap")
    running = check(group)
    assert running["liveness"] == "running", running["why"]
    group.wait_for_results(300)
    # More comes than it can do.
    with steady(group, 60, "nap"):
        slow = check(group, 8)
    assert (slow["liveness"], slow["cause"]) == ("slow", ""), slow["why"]
    group.wait_for_results(group.sent)
    group.send(1, "stuck")
    group.send(50)
    wait_until("it has the record in hand", lambda: check_lag(group) > 0, Deadline.after(30))
    stalled = check(group)
    assert (stalled["liveness"], stalled["cause"]) == ("stalled", "alive without progress"), stalled["why"]
    assert stalled["members"] == 1
    group.kill(member)
    wait_until("Kafka notices", lambda: check(group, 1)["members"] == 0, Deadline.after(60))
    stopped = check(group)
    assert (stopped["liveness"], stopped["cause"]) == ("stopped", "dead member")
    assert stopped["lag"] >= 50
    said = call("check", "--group", group.name, "--bootstrap", group.bootstrap, "--watch", "2")
    assert said.code == 1
    assert f"{group.name} is STOPPED (dead member): nobody is in the group" in said.out


@pytest.mark.nightly
def test_a_group_is_rebalancing_as_long_as_a_member_does_not_hand_its_partitions_over(group: Consumers) -> None:
    first = group.start()
    group.send(40)
    group.wait_for_results(40)
    group.send(1, f"slow {group.name}")
    group.send(50)
    wait_until(
        "the first member is busy",
        lambda: group.sql(("select 1 from met where name = %s", group.name)),
        Deadline.after(30),
    )
    assert check(group, 1)["liveness"] == "stalled", "busy, and nobody wants its partition yet"
    second = group.start()
    # Kafka asks the first member for its partition; it is busy, sends heartbeats, and does not answer.
    rebalancing = wait_until("the second member has asked", lambda: find_rebalancing(group), Deadline.after(8))
    assert (rebalancing["cause"], rebalancing["lag"]) == ("", 51), rebalancing["why"]
    assert rebalancing["why"] == "partitions are being handed out; 51 records are left."
    group.wait_for_results(group.sent)
    settled = wait_until("one of them has it", lambda: find_settled(group), Deadline.after(30))
    assert (settled["members"], settled["lag"]) == (2, 0)
    # Now one dies while the other is busy: handing out begins anew when Kafka has noticed.
    busy = next(pid for pid in (first, second) if pid in last_workers(group))
    group.send(1, f"slow {group.name} again")
    group.send(50)
    wait_until(
        "it is busy",
        lambda: group.sql(("select 1 from met where name = %s", f"{group.name} again")),
        Deadline.after(30),
    )
    group.kill(busy)
    group.wait_for_results(group.sent)
    alone = wait_until("the other has it", lambda: find_settled(group), Deadline.after(30))
    assert (alone["members"], alone["lag"]) == (1, 0)
    group.require_exactly_once()


def find_rebalancing(group: Consumers) -> dict[str, Any] | None:
    verdict = check(group, 1)
    return verdict if verdict["liveness"] == "rebalancing" else None


def find_settled(group: Consumers) -> dict[str, Any] | None:
    verdict = check(group, 2)
    return verdict if verdict["liveness"] == "idle" else None


def last_workers(group: Consumers) -> set[int]:
    rows = group.sql(("select worker from result where topic = %s order by number desc limit 1", group.name))
    return {pid for (pid,) in rows}


@contextmanager
def steady(group: Consumers, per_second: int, value: str) -> Iterator[None]:
    """So many records every second, as long as the block runs."""
    stop = Event()

    def send() -> None:
        while not stop.wait(0.2):
            group.send(per_second // 5, value)

    sending = Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        stop.set()
        sending.join()


def check_lag(group: Consumers) -> int:
    return int(check(group, 1)["lag"])


@pytest.mark.servers
def test_a_group_that_nobody_knows_and_a_cluster_that_nobody_reaches_are_told_apart(group: Consumers) -> None:
    unknown = call("check", "--group", "nobody-knows-it", "--bootstrap", group.bootstrap, "--json")
    assert (unknown.code, unknown.answer("error")["code"]) == (3, "ZT504")
    unreachable = call("check", "--group", group.name, "--bootstrap", "127.0.0.1:9", "--json")
    assert (unreachable.code, unreachable.answer("error")["code"]) == (4, "ZT502")
    both = call("check", "--group", "g", "--bootstrap", "127.0.0.1:9", "--site", "east")
    assert both.code == 2
