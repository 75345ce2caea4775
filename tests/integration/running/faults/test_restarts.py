"""Ended and begun again, by the operator or by the database: nothing is left over, nothing lost, nothing twice."""

from __future__ import annotations

import time

import pytest

from support.kafka_faults import TopicAtSite
from support.running import Running, descendants, is_alive, trickle
from zerotail.lab.fault import kill_target, start_target

pytestmark = pytest.mark.servers


def test_a_database_that_is_killed_and_started_is_found_again(system: Running) -> None:
    root = system.processes[-1].pid
    system.insert(1000)
    system.wait_for_progress()
    assert kill_target(system.lab, "east.postgres").bit
    assert start_target(system.lab, "east.postgres").bit
    system.insert(300)
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert is_alive(root)


def test_sigterm_under_load_ends_everything_and_a_restart_goes_on_also_where_retention_passed_its_place(
    system: Running,
) -> None:
    process = system.processes[-1]
    with trickle(system):
        system.wait_for_progress()
        children = descendants(process.pid)
        asked_at = time.monotonic()
        process.terminate()
        assert process.wait(60) == 0
        assert time.monotonic() - asked_at < 30
    system.wait("nothing is left", lambda: not any(is_alive(pid) for pid in children), 20)
    assert len(children) >= 3, "the application, its JVM and the emitter at least"
    system.insert(500)
    TopicAtSite(system.lab, system.topic, system.partitions).forget_everything()
    lines = system.log.read_text().count("running stage")
    system.start("all")
    system.wait("it runs again", lambda: system.log.read_text().count("running stage") > lines)
    system.wait_until_all_arrived()
    system.require_exactly_once()
