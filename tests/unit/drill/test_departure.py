"""Processes of an old site: known by their ids, refused by their own words, gone when the kernel says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from zerotail.deadline import Deadline, wait_until
from zerotail.drill.departure import (
    AtWork,
    Departure,
    Refusal,
    judge_departure,
    read_refusals,
)
from zerotail.drill.running import ALL, EMITTER, FLOW, JAVA, Running

pytestmark = pytest.mark.fast

LEADER = """
import subprocess, sys
pause = [sys.executable, "-c", "import signal; signal.pause()"]
children = [subprocess.Popen([*pause, part]) for part in ("emitter", "flow")]
print("ready", flush=True)
for child in children:
    child.wait()
"""
SENDER, STAGES, JVM = AtWork(EMITTER, 11), AtWork(FLOW, 12), AtWork(JAVA, 13)
OLD = "a newer epoch or a newer instance is at work"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A start of a site with an emitter and a flow that wait for a signal."""
    log = tmp_path / "run-0.log"
    log.write_text(f"2000-01-01T03:50:53.618+00:00 ending: bank/1: {OLD}\n")
    process = subprocess.Popen([sys.executable, "-c", LEADER], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    started = Running("east", process, log, standby=False)
    yield started
    started.end()
    process.stdout.close()


def say(running: Running, what: str) -> None:
    with running.log.open("a") as log:
        log.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {what}\n")


def test_who_was_at_work_is_gone_when_the_kernel_says_so_and_not_when_a_line_appears(running: Running) -> None:
    departure = Departure(running)
    try:
        assert [one.part for one in departure.at_work] == [EMITTER, FLOW]
        say(running, f"ending: bank/0: {OLD}")
        emitter, flow = departure.at_work
        os.kill(emitter.pid, signal.SIGKILL)
        told = departure.wait((EMITTER,))
        assert told.in_time, told
        assert departure.left == [flow]
        wait_until("it is not there any more", lambda: emitter.pid not in running.members(), Deadline.after(10))
    finally:
        departure.close()


def test_what_was_said_before_is_no_refusal(running: Running) -> None:
    departure = Departure(running)
    try:
        for one in departure.at_work:
            os.kill(one.pid, signal.SIGKILL)
        wait_until("they are gone", lambda: not departure.left, Deadline.after(10))
        say(running, f"ending: stage settle: {OLD}")
        assert departure.wait().in_time
        later = time.time() + 60
        assert judge_departure(departure.at_work, [], {}, later) is None
    finally:
        departure.close()


def test_a_process_has_five_seconds_from_its_own_refusal() -> None:
    refused = [Refusal(EMITTER, 100.0), Refusal(FLOW, 104.0)]
    told = judge_departure([SENDER, STAGES, JVM], refused, {SENDER: 101.0, STAGES: 108.9, JVM: 109.0}, 110.0)
    assert told is not None
    assert told.in_time
    assert told.evidence.startswith("emitter (pid 11) gone 1.00 s after the refusal; flow (pid 12) gone 4.90 s")


@pytest.mark.parametrize(
    ("gone", "now"),
    [
        ({SENDER: 105.1, STAGES: 101.0, JVM: 101.0}, 106.0),
        ({SENDER: 101.0, STAGES: 101.0, JVM: 105.1}, 106.0),
        ({SENDER: 101.0, STAGES: 101.0}, 105.1),
        ({}, 105.1),
    ],
)
def test_who_is_late_or_still_there_is_found(gone: dict[AtWork, float], now: float) -> None:
    told = judge_departure([SENDER, STAGES, JVM], [Refusal(EMITTER, 100.0)], gone, now)
    assert told is not None
    assert not told.in_time
    assert judge_departure([SENDER, STAGES, JVM], [Refusal(EMITTER, 100.0)], {}, 105.0) is None, "not late yet"


def test_where_nobody_was_at_work_nothing_is_shown() -> None:
    told = judge_departure([], [Refusal(EMITTER, 1.0)], {}, 2.0)
    assert told is not None
    assert not told.in_time


def test_refusals_are_read_with_their_times_whoever_said_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "2026-11-18T03:50:52.707+00:00 waiting producers cards, wires: the database of west does not answer.\n"
        "Traceback (most recent call last):\n"
        f"2026-11-18T03:50:53.618+00:00 ending: bank/1: {OLD}\n"
        "2026-11-18T03:50:54.585+00:00 emitter ended with exit code 6; it starts again in 0.5 s\n"
        "2026-11-18T03:50:55.000+00:00 ending: bank/0: ZT601 the receiver has more than was journaled\n"
        "2026-11-18T05:50:57.228+02:00 ending: stage settle: this site is not the one that works\n"
    )
    first, second = read_refusals(log)
    assert (first.part, second.part) == (EMITTER, FLOW)
    assert second.at - first.at == pytest.approx(3.61)
    assert set(ALL) >= {first.part, second.part}
