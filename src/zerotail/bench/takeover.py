"""`zerotail bench takeover`: from the command to the first new message outside, again and again, over long histories.

One lab for each length of history. The history goes through the flow like everything else. Then the active site is
killed with everything in it, the other one takes over, the lost one comes back as a warm standby, and so on, back and
forth. A message is new when its instruction was given after the kill; when it arrived is read off a record of the
receiver's counters, taken every few milliseconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from threading import Event, Thread

from zerotail.bench.goals import reached_of
from zerotail.bench.mirrored import fail_over_once
from zerotail.bench.result import JudgedHistory, MirroredRound, TakeoverResult, TakeoverRound
from zerotail.bench.takeover_goals import WARM_MESSAGES, goals_of
from zerotail.core.identity import ChannelName, PartitionNumber, SegmentNumber, StageName
from zerotail.deadline import Deadline, wait_until
from zerotail.drill import blows
from zerotail.drill.acts import begin_again, take_over
from zerotail.drill.example import prepare_example
from zerotail.drill.judgement import Counts, judge
from zerotail.drill.rehearsal import CHANNEL, STAGE, Rehearsal
from zerotail.errors import Unfinished
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import temporary_lab
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.extent import read_extents
from zerotail.postgres.segment import all_rows
from zerotail.running.prepare import FOLLOWED

_SAMPLE_SECONDS = 0.01
_STEADY_MESSAGES = 500
_PATIENCE_SECONDS = 120.0
_HISTORY_SECONDS = 1_200.0
_FOLLOW_SECONDS = 900.0
"""A site that comes back gets a new topic, and its follower fills it with the whole history."""
_GIVEN = """
select min(serial) from zerotail.instruction
 where producer = %s and partition = %s and serial between %s and %s and submitted_at > to_timestamp(%s)
"""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TakeoverSettings:
    """How much is measured."""

    histories: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    rounds: tuple[int, ...] = (10, 10, 10)
    """Takeovers for each of them: a site that comes back after a long history is filled for minutes."""
    rate: float = 500.0
    strategy: str = "auto"
    receiver: str = "R2"
    mirrored_rounds: int = 0
    """Losses of a site of the same business with a plain MirrorMaker 2."""


@dataclass(slots=True)
class Watched:
    """What the receiver had accepted, and when."""

    stage: Rehearsal
    samples: list[tuple[float, dict[int, int]]] = field(default_factory=list)
    _stop: Event = field(default_factory=Event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take samples for the length of a block."""
        thread = Thread(target=self._watch, name="watch the receiver", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def arrived_at(self, partition: int, number: int) -> float | None:
        """When that number was there for the first time."""
        return next((at for at, last in self.samples if last.get(partition, 0) >= number), None)

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            totals = {one.partition: one.distinct for one in self.stage.totals()}
            self.samples.append((time.time(), totals))


def bench_takeover(
    settings: TakeoverSettings,
    tell: Tell,
    earlier: TakeoverResult | None = None,
    save: Callable[[TakeoverResult], None] = lambda _found: None,
) -> TakeoverResult:
    """Measure everything, in labs of its own; what an earlier run measured besides stays. What is measured is saved
    as soon as it is judged, so that a run that is broken off has not been for nothing.
    """
    rounds = [one for one in earlier.rounds if one.history not in settings.histories] if earlier else []
    judged = [one for one in earlier.judged if one.history not in settings.histories] if earlier else []
    mirrored = [fail_over_once(settings.rate, tell) for _ in range(settings.mirrored_rounds)]
    if earlier and not mirrored:
        mirrored = [*earlier.mirrored]
    for history, takeovers in zip(settings.histories, settings.rounds, strict=True):
        tell(f"{history:,} instructions of history: bringing up two sites")
        some, counts = _bench_history(settings, history, takeovers, tell)
        rounds += some
        judged.append(JudgedHistory(history, counts.lost, counts.duplicated, not counts.wrong))
        save(_result(settings.strategy, rounds, judged, mirrored))
    return _result(settings.strategy, rounds, judged, mirrored)


def _bench_history(
    settings: TakeoverSettings, history: int, takeovers: int, tell: Tell
) -> tuple[list[TakeoverRound], Counts]:
    lab = temporary_lab(lambda folder: LabSettings(folder, receiver_class=settings.receiver))
    with lab as layout, tempfile.TemporaryDirectory(prefix="zerotail-bench-") as notes:
        prepare_example(layout, strategy=settings.strategy)
        stage = Rehearsal(layout, settings.rate, 1, Path(notes), lambda _line: None)
        try:
            stage.begin()
            _load_history(stage, history)
            rounds = []
            for number in range(1, takeovers + 1):
                if number > 1:
                    stage.business.stop()  # what brings a site back is not measured, and is faster without load
                    begin_again(stage)
                stage.processes[stage.standby].wait_until_says(_FOLLOW_SECONDS, FOLLOWED)
                rounds.append(_lose_a_site(stage, history))
                tell(f"{history:,}, takeover {number} of {takeovers}: {_told(rounds[-1])}")
            return rounds, _judged(stage)
        finally:
            stage.end()


def _told(one: TakeoverRound) -> str:
    steps = ", ".join(f"{step} {seconds:.2f}" for step, seconds in one.steps.items())
    return f"{one.takeover_seconds:.2f} s ({steps}), {one.refilled} records appended, {one.read} read"


def _judged(stage: Rehearsal) -> Counts:
    """What is missing outside, or there twice, when the flow has come to rest."""
    stage.business.stop()
    stage.drain()
    attempts = tuple(stage.receiver.attempts(deadline=Deadline.after(_PATIENCE_SECONDS)))
    return judge(stage.database, stage.business.acknowledged, ChannelName(CHANNEL), attempts)


def _load_history(stage: Rehearsal, count: int) -> None:
    """Through the flow, as fast as it goes."""
    before = stage.accepted()
    command = [sys.executable, "-m", "zerotail.bench.loading", "--config", str(stage.config(stage.active))]
    loader = subprocess.Popen([*command, "--count", str(count)])
    try:
        deadline = Deadline.after(_HISTORY_SECONDS)
        wait_until("the history is outside", lambda: stage.accepted() >= before + count, deadline, every_seconds=0.5)
    finally:
        loader.kill()
        loader.wait()


def _lose_a_site(stage: Rehearsal, history: int) -> TakeoverRound:
    _wait_for_new(stage, history, WARM_MESSAGES)
    survivor = stage.standby
    with session(stage.dsn(survivor), Deadline.after(_PATIENCE_SECONDS)) as connection:
        known = read_extents(connection, [STAGE])
    watched = Watched(stage)
    with watched.watching():
        blows.kill_site(stage, stage.active)
        take_over(stage, survivor)
        _wait_for_new(stage, history, _STEADY_MESSAGES)
    fault, asked_at, promoted_at = stage.fault, stage.asked_at, stage.promoted_at
    if fault is None or asked_at is None or promoted_at is None:
        raise Unfinished("the takeover has no times.", code="ZT803")
    with session(stage.database, Deadline.after(_PATIENCE_SECONDS)) as connection:
        arrived = [
            watched.arrived_at(partition, number)
            for (stage_name, partition), segment in known.items()
            if (number := _first_new(connection, stage_name, partition, segment, fault.fell_at)) is not None
        ]
    first = min((at for at in arrived if at is not None), default=None)
    if first is None:
        raise Unfinished("no new message arrived.", code="ZT803")
    return TakeoverRound(
        history=history,
        takeover_seconds=round(first - asked_at, 3),
        outage_seconds=round(first - fault.at, 3),
        promote_seconds=round(promoted_at - asked_at, 3),
        refilled=stage.acts[-1].refilled,
        read=stage.acts[-1].read,
        steps=_steps(stage, asked_at, first),
    )


def _steps(stage: Rehearsal, asked_at: float, first: float) -> dict[str, float]:
    """Where the time went."""
    steps = [one for one in stage.steps if one.began_at >= asked_at]
    went = {one.step: round(one.ended_at - one.began_at, 3) for one in steps}
    return {**went, "first new message": round(first - max(one.ended_at for one in steps), 3)}


def _first_new(
    connection: Connection, stage: StageName, partition: PartitionNumber, after: SegmentNumber, since: float
) -> int | None:
    """The number of the first message whose instruction was given after `since`; the example emits one for each."""
    for row in all_rows(connection, stage, partition, after=int(after)):
        position = int(row.first_position)
        for producer, first, count in row.runs():
            last = first + count - 1
            found = connection.execute(_GIVEN.encode(), (producer, partition, first, last, since)).fetchone()
            if found is not None and found[0] is not None:
                return position + int(found[0]) - int(first) + 1
            position += count
    return None


def _wait_for_new(stage: Rehearsal, history: int, count: int) -> None:
    """Return when the flow is steady: so many messages are outside whose instructions are given from now on."""
    wanted = history + stage.business.acknowledged + count
    deadline = Deadline.after(_PATIENCE_SECONDS)
    wait_until("the flow is steady", lambda: stage.accepted() >= wanted, deadline, every_seconds=0.05)


def _result(
    strategy: str,
    rounds: Sequence[TakeoverRound],
    judged: Sequence[JudgedHistory],
    mirrored: Sequence[MirroredRound],
) -> TakeoverResult:
    ordered = sorted(rounds, key=lambda one: one.history)
    seconds = [one.takeover_seconds for one in ordered]
    medians = {
        str(history): round(statistics.median(one.takeover_seconds for one in some), 3)
        for history, some in groupby(ordered, key=lambda one: one.history)
    }
    by_length = [*medians.values()]
    growth = by_length[-1] / by_length[0]
    found = TakeoverResult(
        strategy=strategy,
        takeover_seconds_median=round(statistics.median(seconds), 3),
        takeover_seconds_worst=max(seconds),
        outage_seconds_median=round(statistics.median(one.outage_seconds for one in ordered), 3),
        medians_by_history=medians,
        growth=round(growth, 3),
        lost=sum(one.lost for one in judged),
        duplicated=sum(one.duplicated for one in judged),
        rounds=tuple(ordered),
        judged=tuple(sorted(judged, key=lambda one: one.history)),
        mirrored=tuple(mirrored),
        reached={},
    )
    return replace(found, reached=reached_of(goals_of(found)))
