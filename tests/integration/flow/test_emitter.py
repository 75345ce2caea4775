"""The emitter as a real process: killed at random, replaced, told to end, in the wrong place."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from support.backend_log import CLAIM, LANE, logging_backends, read_deaths, require_died_in_commit
from support.emitting import Emitting, make_emitting
from support.outside import Judge, Outside, http_outside, kafka_outside, postgres_outside, wait_for
from support.running import kill_points
from support.seeds import seed_of
from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, PartitionNumber
from zerotail.core.receiver import ReceiverClass
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session
from zerotail.postgres.doubt import NOT_SENT, SENT, read_open_doubts, settle
from zerotail.postgres.journal import create_head
from zerotail.postgres.owed import read_backlogs

pytestmark = pytest.mark.servers

KILLS = 10
SEED = seed_of("emitter")
Make = Callable[..., Emitting]


@pytest.fixture
def emitting(lab: Layout, judge: Judge, servers_outside: Layout, tmp_path: Path) -> Iterator[Make]:
    """Makes a stage that owes on the named channels."""
    made: list[Emitting] = []

    def make(*channels: str) -> Emitting:
        made.append(make_emitting(lab, judge, tmp_path, channels))
        return made[-1]

    yield make
    for one in made:
        one.end()


def acknowledged(one: Emitting) -> dict[Lane, int]:
    with session(dsn(one.lab.database("east")), Deadline.after(20)) as primary:
        return {
            Lane(lane.channel, lane.partition, lane.target): lane.acknowledged
            for lane in read_backlogs(primary)
            if lane.stage == one.stage
        }


def all_acknowledged(one: Emitting) -> bool:
    return acknowledged(one) == one.given


def values(first: int, count: int) -> list[bytes]:
    return [b"payment %d" % number for number in range(first, first + count)]


def feed_until(one: Emitting, stop: Event, *, every_seconds: float = 0.04) -> Thread:
    """Owe more all the time."""

    def run() -> None:
        first = 1
        while not stop.is_set():
            one.owe(values(first, 10))
            first += 10
            stop.wait(every_seconds)

    thread = Thread(target=run)
    thread.start()
    return thread


def judged(judge: Judge, lab: Layout) -> dict[str, Outside]:
    outsides = [http_outside(judge, one) for one in ReceiverClass]
    outsides += [kafka_outside(lab, ReceiverClass.R0), kafka_outside(lab, ReceiverClass.R1)]
    outsides += [postgres_outside(lab, ReceiverClass.R0), postgres_outside(lab, ReceiverClass.R1)]
    return {outside.name: outside for outside in outsides}


def test_an_emitter_killed_again_and_again_loses_and_repeats_nothing(emitting: Make, judge: Judge, lab: Layout) -> None:
    one = emitting("http-R0", "http-R1", "http-R2", "kafka-R0", "kafka-R1", "postgres-R0", "postgres-R1")
    stop, chance = Event(), random.Random(SEED)
    feeder = feed_until(one, stop)
    try:
        for _ in range(KILLS):
            process = one.start()
            stop.wait(chance.uniform(0.05, 1.2))
            process.kill()
            process.wait()
    finally:
        stop.set()
        feeder.join()
    before = acknowledged(one)
    one.start()
    wait_for("everything is acknowledged", lambda: all_acknowledged(one), seconds=60)
    assert any(before[lane] < one.given[lane] for lane in one.given), "the kills came when all was done"
    outsides = judged(judge, lab)
    for lane, last in one.given.items():
        assert last > 100
        assert outsides[lane.channel].numbers(lane) == list(range(1, last + 1)), lane
    totals = judge.control.totals(deadline=Deadline.after(20))
    assert sum(totals.of(lane.channel, lane.partition).different_bytes for lane in one.given if "http" in lane[0]) == 0


def test_an_emitter_killed_inside_a_commit_of_its_own_loses_and_repeats_nothing(
    emitting: Make, judge: Judge, lab: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kill_points(tmp_path).items():
        monkeypatch.setenv(name, value)
    one = emitting("http-R2")
    lane = one.lane("http-R2")
    with logging_backends(lab, "east") as log:
        for number, point in enumerate(("ClaimLane", "RecordAcknowledged")):
            one.owe(values(100 * number + 1, 100))
            (tmp_path / f"in-commit-of-{point}").touch()
            assert one.start(wait=False).wait(60) == -signal.SIGKILL
        claiming, recording = read_deaths(tmp_path)
        require_died_in_commit(claiming, log, CLAIM)
        require_died_in_commit(recording, log, LANE)
    one.start()
    wait_for("everything is acknowledged", lambda: all_acknowledged(one), seconds=60)
    assert http_outside(judge, ReceiverClass.R2).numbers(lane) == list(range(1, 201))


def test_a_receiver_without_memory_leaves_exactly_its_doubts_and_goes_on_when_they_are_settled(
    emitting: Make, judge: Judge, lab: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kill_points(tmp_path).items():
        monkeypatch.setenv(name, value)
    one = emitting("http-R3")
    lane = one.lane("http-R3")
    outside = http_outside(judge, ReceiverClass.R3)
    stop, chance = Event(), random.Random(SEED)
    feeder = feed_until(one, stop, every_seconds=0.1)
    doubted = 0
    try:
        for kill in range(KILLS):
            process = one.start()
            doubted += settle_by_truth(one, outside, lane)
            if kill % 2:
                # With the request on its way, or its answer not noted: a kill by chance may miss both.
                (tmp_path / ("sent" if kill % 4 == 1 else "answered")).touch()
            else:
                stop.wait(chance.uniform(0.05, 0.4))
                process.kill()
            process.wait(60)
    finally:
        stop.set()
        feeder.join()
    one.start()
    settle_by_truth(one, outside, lane)
    wait_for("everything is acknowledged", lambda: all_acknowledged(one), seconds=60)
    assert doubted >= KILLS // 2, "each kill at a named point leaves a doubt"
    assert outside.numbers(lane) == list(range(1, one.given[lane] + 1))


def settle_by_truth(one: Emitting, outside: Outside, lane: Lane) -> int:
    """Wait until the sender goes on or has listed its doubts; settle them by the receiver's own record."""
    began = acknowledged(one).get(lane, 0)

    def open_now() -> list[EmissionNumber]:
        with session(dsn(one.lab.database("east")), Deadline.after(20)) as primary:
            return [doubt.number for doubt in read_open_doubts(primary) if doubt.lane == lane]

    wait_for("the sender goes on or waits", lambda: bool(open_now()) or acknowledged(one).get(lane, 0) > began)
    doubts = open_now()
    if not doubts:
        return 0
    known = acknowledged(one)[lane]
    arrived = len(outside.numbers(lane))
    assert doubts == list(range(known + 1, known + len(doubts) + 1))
    assert len(doubts) <= 5
    assert known <= arrived <= doubts[-1], "what is not in doubt is certain"
    with session(dsn(one.lab.database("east")), Deadline.after(20)) as primary:
        for number in doubts:
            with primary.transaction():
                decision = SENT if number <= arrived else NOT_SENT
                settle(primary, lane, number, number, decision, "judge", sender_is_out=True)
    return len(doubts)


def test_the_older_of_two_emitters_ends_by_itself_with_its_own_code(emitting: Make, judge: Judge, lab: Layout) -> None:
    one = emitting("http-R2", "postgres-R0")
    one.owe(values(1, 50))
    older = one.start()
    wait_for("the first one sends", lambda: all_acknowledged(one))
    second = one.start(wait=False)
    assert second.wait(30) == 6
    assert older.poll() is None, "the one that was started by accident has ended"
    one.start(take_over=True)
    one.owe(values(51, 50))
    assert older.wait(30) == 6
    wait_for("the second one sends", lambda: all_acknowledged(one))
    for lane in one.given:
        assert judged(judge, lab)[lane.channel].numbers(lane) == list(range(1, 101))


def test_an_emitter_at_the_standby_ends_with_its_own_code(emitting: Make) -> None:
    assert emitting("http-R2").start("west").wait(30) == 7


def test_an_emitter_takes_up_new_lanes_and_ends_when_told(emitting: Make) -> None:
    one = emitting("http-R2")
    process = one.start()
    added = PartitionNumber(one.partition + 1000)
    with session(dsn(one.lab.database("east")), Deadline.after(20)) as primary:
        create_head(primary, one.stage, added, [])
    one.owe(values(1, 30), added)
    wait_for("the new lane is served", lambda: all_acknowledged(one))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_frozen_receiver_holds_up_its_own_lane_only(emitting: Make, judge: Judge) -> None:
    one = emitting("http-R2", "postgres-R0")
    one.start()
    judge.signal(signal.SIGSTOP)
    try:
        one.owe(values(1, 40))
        wait_for("the other one goes on", lambda: acknowledged(one)[one.lane("postgres-R0")] == 40)
        assert acknowledged(one)[one.lane("http-R2")] == 0
    finally:
        judge.signal(signal.SIGCONT)
    wait_for("both are served", lambda: all_acknowledged(one))
