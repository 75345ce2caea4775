"""Run a drill: prepare the two sites, play the scenario under load, judge, report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from zerotail.core.identity import ChannelName, StageName
from zerotail.core.verdict import Verdict
from zerotail.drill.acts import begin_again
from zerotail.drill.arrivals import Arrival, read_arrivals
from zerotail.drill.checker import Expect, check
from zerotail.drill.example import prepare_example
from zerotail.drill.judgement import Counts, conclude, judge
from zerotail.drill.page import write_page
from zerotail.drill.record import record_of, told
from zerotail.drill.rehearsal import CHANNEL, STAGE, Rehearsal, Tell
from zerotail.drill.report import verdict_as_json, verdict_as_text
from zerotail.drill.result import DrillResult, FaultTold, write_result
from zerotail.drill.scenarios import MESSAGES, Scenario
from zerotail.drill.settling import Settling
from zerotail.drill.surroundings import machine, time_of_day, versions
from zerotail.drill.witnesses import write_history
from zerotail.errors import Misused, ZerotailError
from zerotail.lab.layout import Layout
from zerotail.lab.receiver.protocol import Attempt
from zerotail.private import make_folder, write_file

Watch = Callable[[Rehearsal], AbstractContextManager[None]]
"""Shows a stage to somebody for the length of a block."""
_FEWEST_BEFORE, _MOST_BEFORE = 200, 1_200
_LONGEST_DELAY_SECONDS = 0.2
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DrillSettings:
    """What a drill was asked for."""

    seed: int = 1
    rate: float = 1_000.0
    count: int | None = None
    """Instructions of the business in all; None: as many as the scenario needs."""
    strategy: str = "auto"
    rebuild_state: bool = False
    """A takeover makes the state anew from the journal, also where the scenario does not ask for it."""
    scale: float = 1.0
    """How many messages each wait for new ones wants, as a share of the usual number."""


@dataclass(slots=True)
class Judged:
    """What both judges found."""

    counts: Counts | None = None
    checked: Verdict | None = None
    arrivals: tuple[Arrival, ...] = ()
    attempts: tuple[Attempt, ...] = ()


def run_drill(
    layout: Layout,
    scenario: Scenario,
    settings: DrillSettings,
    folder: Path,
    tell: Tell,
    *,
    watch: Watch = lambda _stage: nullcontext(),
) -> DrillResult:
    """Play the scenario in a lab that was just brought up; files go into `folder`."""
    replayed = settings.rebuild_state or scenario.replayed
    prepare_example(layout, replayed=replayed, strategy=settings.strategy)
    rehearsal = new_stage(layout, settings, folder, tell)
    try:
        with watch(rehearsal):
            rehearsal.begin()
            return play(rehearsal, scenario, settings, folder)
    finally:
        rehearsal.end()


def play_next(rehearsal: Rehearsal, scenario: Scenario, settings: DrillSettings, folder: Path) -> DrillResult:
    """Play one more scenario on a stage; its processes go on, and its history grows."""
    rehearsal.began = time.monotonic()
    if settings.count is not None:
        rehearsal.business.count = rehearsal.business.acknowledged + settings.count
    begin_again(rehearsal)
    rehearsal.random.seed(settings.seed)
    return play(rehearsal, scenario, settings, folder, last=False)


def require_unused(folder: Path) -> None:
    """Refuse a folder where witnesses have written: two histories in one are judged as one that never was."""
    if (folder / "history").exists():
        raise Misused(
            f"{folder} holds the history of another drill.",
            code="ZT121",
            tries=[f"zerotail drill report {folder}", "--dir D    # another folder"],
        )


def new_stage(layout: Layout, settings: DrillSettings, folder: Path, tell: Tell) -> Rehearsal:
    """A stage whose witnesses write below `folder`."""
    history = folder / "history"
    make_folder(history)
    return Rehearsal(layout, settings.rate, settings.seed, history, tell, settings.count, settings.scale)


def play(
    rehearsal: Rehearsal, scenario: Scenario, settings: DrillSettings, folder: Path, *, last: bool = True
) -> DrillResult:
    """Play a scenario on a stage where messages flow, and judge it; with `last` its processes are not needed again."""
    judged = Judged()
    make_folder(folder)
    rehearsal.scene_at = time.time()
    rehearsal.steps.clear()  # what made the stage ready is no act of this drill
    rehearsal.note("stated", f"allowed: {scenario.allowed}")
    with Settling(rehearsal):
        try:
            _play_under_load(rehearsal, scenario)
        except ZerotailError as error:
            # What stands still is a finding; the judges say what it left behind.
            rehearsal.findings.append(f"the story ended early: {error.message}")
            rehearsal.note("finding", rehearsal.findings[-1])
        rehearsal.business.stop()
        rehearsal.note("load", f"{rehearsal.business.acknowledged} instructions acknowledged in all")
        _try_to_drain(rehearsal)
    if last and scenario.afterwards is None:
        rehearsal.end()  # so that the judges have the machine for themselves
    else:
        rehearsal.end_strays()
    try:
        _judge(rehearsal, scenario, judged, folder)
    except ZerotailError as error:
        rehearsal.findings.append(f"a site could not be judged: {error.message}")
    if scenario.afterwards is not None:
        _look_afterwards(rehearsal, scenario.afterwards)
    page = folder / "report.html"
    result = _result(scenario, rehearsal, judged, settings, page)
    rehearsal.before = (result.submitted, result.received)
    record = record_of(rehearsal, judged.arrivals, judged.attempts, machine() | versions(rehearsal.database))
    write_result(folder / "result.json", "drill-run", result, record=told(record))
    write_page(page, result, record)
    return result


def _play_under_load(rehearsal: Rehearsal, scenario: Scenario) -> None:
    """The scenario begins at a moment that the seed chooses."""
    before = rehearsal.random.randint(_FEWEST_BEFORE, _MOST_BEFORE)
    if rehearsal.count is not None:
        before = min(before, rehearsal.count // 3)
    rehearsal.wait_for_new(before)
    time.sleep(rehearsal.random.random() * _LONGEST_DELAY_SECONDS)
    rehearsal.note("load", f"{rehearsal.business.acknowledged} acknowledged, {rehearsal.accepted()} messages outside")
    scenario.play(rehearsal)
    rehearsal.wait_for_new(MESSAGES)
    if rehearsal.count is not None:
        rehearsal.wait_for_last()


def _look_afterwards(rehearsal: Rehearsal, look: Callable[[Rehearsal], None]) -> None:
    try:
        look(rehearsal)
    except ZerotailError as error:
        rehearsal.findings.append(f"the old site did not come back: {error.message}")
        rehearsal.note("finding", rehearsal.findings[-1])


def _try_to_drain(rehearsal: Rehearsal) -> None:
    try:
        rehearsal.drain()
    except ZerotailError as error:
        rehearsal.findings.append(f"the flow did not come to rest: {error.message}")


def _judge(rehearsal: Rehearsal, scenario: Scenario, judged: Judged, folder: Path) -> None:
    judged.attempts = tuple(rehearsal.attempts())
    acknowledged = rehearsal.business.acknowledged
    judged.counts = judge(rehearsal.database, acknowledged, ChannelName(CHANNEL), judged.attempts)
    if scenario.is_planned:
        rehearsal.promise("a planned change leaves nothing in doubt", judged.counts.in_doubt == rehearsal.in_doubt)
    rehearsal.in_doubt = judged.counts.in_doubt
    chained = write_history(rehearsal, judged.attempts)
    rehearsal.producers = {str(name): int(number) for name, number in chained.numbers.items()}
    judged.arrivals = tuple(
        read_arrivals(rehearsal.database, judged.attempts, StageName(STAGE), CHANNEL, rehearsal.scene_at)
    )
    expect = Expect(
        faults=len(scenario.faults),
        work_during_faults=False,
        states=(),
        standby=False,
        fenced_process_limit=None,
    )
    judged.checked = check(rehearsal.history, expect, content_of=chained)
    write_file(folder / "verdict.txt", verdict_as_text(judged.checked))
    write_file(folder / "verdict.json", json.dumps(verdict_as_json(judged.checked)) + "\n")


def _moments(rehearsal: Rehearsal, arrivals: Sequence[Arrival]) -> tuple[float | None, float | None, float | None]:
    """Fault, command behind it, and first message of an instruction that was given after it."""
    fault, asked_at = rehearsal.fault, rehearsal.asked_at
    # Of a planned change, what counts is what was given when the other site had begun.
    since = rehearsal.promoted_at or asked_at if fault is None else fault.fell_at
    new = [one.arrived_at for one in arrivals if since is not None and one.given_at > since]
    if fault is None:
        return None, asked_at, min(new, default=None)
    return fault.at, None if asked_at is None or asked_at < fault.at else asked_at, min(new, default=None)


def _result(
    scenario: Scenario, rehearsal: Rehearsal, judged: Judged, settings: DrillSettings, page: Path
) -> DrillResult:
    fault_at, asked_at, first = _moments(rehearsal, judged.arrivals)
    counts = judged.counts or Counts(rehearsal.business.acknowledged, 0, 0, 0, 0, 0, ())
    open_ends = _open_ends(scenario, rehearsal, first)
    checked = judged.checked
    rules = [f"{one.rule}: {one.says} ({one.count} times)" for one in checked.violations] if checked else []
    doubts = [f"open: {one.says}" for one in checked.doubts] if checked else ["open: nothing was checked"]
    return DrillResult(
        scenario=scenario.name,
        seed=settings.seed,
        verdict=conclude(judged.counts, checked, rehearsal.findings, open_ends),
        lost=counts.lost,
        duplicated=counts.duplicated,
        reordered=counts.reordered,
        in_doubt=counts.in_doubt,
        submitted=counts.submitted,
        received=counts.received,
        detect_seconds=_between(fault_at, asked_at),
        promote_seconds=_between(asked_at, rehearsal.promoted_at),
        takeover_seconds=_between(asked_at, first),
        outage_seconds=_between(fault_at, first),
        faults=tuple(
            FaultTold(f"{fault.report.fault} {fault.report.target}", fault.report.bit, fault.report.evidence)
            for fault in rehearsal.faults
        ),
        history=str(rehearsal.history),
        report=str(page),
        receiver=rehearsal.layout.receiver_class,
        rate=rehearsal.rate,
        seconds=round(time.monotonic() - rehearsal.began, 1),
        strategy=settings.strategy,
        rebuild_state=settings.rebuild_state or scenario.replayed,
        allowed=scenario.allowed,
        reasons=(*rehearsal.findings, *rules, *open_ends, *doubts, *counts.evidence),
        count=settings.count,
        own_submitted=counts.submitted - rehearsal.before[0],
        own_received=counts.received - rehearsal.before[1] if judged.counts else None,
        began_at=time_of_day(rehearsal.scene_at),
        ended_at=time_of_day(time.time()),
    )


def _open_ends(scenario: Scenario, rehearsal: Rehearsal, first: float | None) -> list[str]:
    """What leaves the verdict open."""
    told = [f"{fault.report.fault} {fault.report.target}" for fault in rehearsal.faults if not fault.report.bit]
    reasons = [f"open: {one} did not bite" for one in told]
    fell = [fault.report.fault for fault in rehearsal.faults]
    reasons += [
        f"open: the fault {wanted} was never there"
        for wanted in scenario.faults
        if not any(one.startswith(wanted) for one in fell)
    ]
    if first is None:
        reasons.append("open: no message of an instruction given after the fault was accepted")
    return reasons


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None or end < start else round(end - start, 3)
