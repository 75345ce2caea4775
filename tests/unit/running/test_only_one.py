"""Who counts as at work, and how long that is watched before a second instance ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from zerotail.core.identity import SiteName
from zerotail.postgres.process import ProcessSeen
from zerotail.running.only_one import find_others, watch

pytestmark = pytest.mark.fast

EAST = SiteName("east")
PARTS = {("emitter", "bank"), ("stage", "settle")}
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ELSEWHERE = ProcessSeen("east", "emitter", "bank", 0, 4711, "another-host", "working", "", NOON, 0.4, {})
HERE = replace(ELSEWHERE, host=socket.gethostname())


@pytest.fixture
def ended() -> Iterator[int]:
    """A process that has ended and that nobody has collected: a zombie."""
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        (ELSEWHERE, True),
        (replace(ELSEWHERE, doing="waiting", reason="the gate is closed"), True),
        (replace(ELSEWHERE, role="stage", name="settle"), True),
        (replace(ELSEWHERE, silent_seconds=6.0), False),
        (replace(ELSEWHERE, doing="stopped"), False),
        (replace(ELSEWHERE, site="west"), False),
        (replace(ELSEWHERE, name="another bank"), False),
        (replace(HERE, pid=os.getppid()), True),
        (replace(HERE, pid=os.getpid()), False),
        (replace(HERE, pid=2**22 - 1), False),
    ],
)
def test_who_may_be_alive_counts(seen: ProcessSeen, counts: bool) -> None:
    assert bool(find_others([seen], EAST, PARTS)) is counts


def test_a_zombie_is_gone(ended: int) -> None:
    assert not find_others([replace(HERE, pid=ended)], EAST, PARTS)


def test_whoever_goes_silent_is_not_waited_for_any_longer_and_whoever_stays_is_told_of() -> None:
    waited: list[float] = []
    answers = iter([[ELSEWHERE], [ELSEWHERE], []])
    assert watch(lambda: next(answers), waited.append) == []
    assert len(waited) == 2
    waited.clear()
    assert watch(lambda: [ELSEWHERE], waited.append) == [ELSEWHERE]
    assert 5.0 < sum(waited) <= 10.0, "one that is ending has the time to"
    assert watch(list, waited.append) == []
