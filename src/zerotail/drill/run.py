"""Run a drill: prepare the two sites, play the scenario under load, judge, report."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from zerotail.core.identity import StageName
from zerotail.core.verdict import Outcome
from zerotail.drill.arrivals import Arrival, read_arrivals
from zerotail.drill.judgement import Counts, judge
from zerotail.drill.page import write_page
from zerotail.drill.rehearsal import CHANNEL, STAGE, Rehearsal, prepare_example
from zerotail.drill.result import DrillResult, FaultTold
from zerotail.drill.scenarios import MESSAGES_AFTER, MESSAGES_BEFORE, Scenario
from zerotail.lab.layout import Layout

Tell = Callable[[str], None]


def run_drill(layout: Layout, scenario: Scenario, *, seed: int, rate: float, folder: Path, tell: Tell) -> DrillResult:
    """Play the scenario in a lab that was just brought up; files go into `folder`."""
    began = time.monotonic()
    prepare_example(layout)
    stage = Rehearsal(layout, rate, tell)
    try:
        stage.start_site("east")
        stage.start_site("west", standby=True)
        stage.wait_until_says("east", "running stage", "running producers")
        stage.wait_until_says("west", "warm, until")
        with stage.business() as business:
            stage.wait_for_more(MESSAGES_BEFORE)
            stage.note(
                "load", f"{business.acknowledged} instructions acknowledged, {stage.accepted()} messages outside"
            )
            scenario.play(stage)
            stage.wait_for_more(MESSAGES_AFTER)
        stage.note("load", f"{business.acknowledged} instructions acknowledged in all")
        stage.drain()
        counts = judge(stage.database, business.acknowledged, CHANNEL, stage.totals())
        began_at = stage.events[0].at
        arrivals = read_arrivals(stage.database, stage.receiver, StageName(STAGE), CHANNEL, began_at)
    finally:
        stage.end()
    result = _result(scenario, stage, counts, arrivals, seed=seed, seconds=time.monotonic() - began)
    folder.mkdir(parents=True, exist_ok=True)
    history, page = folder / "history.jsonl", folder / "report.html"
    result = replace(result, history=str(history), report=str(page))
    history.write_text("".join(json.dumps(msgspec.to_builtins(event)) + "\n" for event in stage.events))
    (folder / "result.json").write_bytes(msgspec.json.encode(result))
    write_page(page, result, stage.events, arrivals, versions())
    return result


def versions() -> dict[str, str]:
    """What the drill ran on."""
    from importlib.metadata import version

    parts = ("zerotail", "pyspark", "confluent-kafka", "psycopg")
    return {"python": platform.python_version(), **{part: version(part) for part in parts}}


def _result(
    scenario: Scenario, stage: Rehearsal, counts: Counts, arrivals: list[Arrival], *, seed: int, seconds: float
) -> DrillResult:
    since = stage.fault_at or stage.asked_at
    new = [one.arrived_at for one in arrivals if since is not None and one.given_at > since]
    first = min(new, default=None)
    reasons = [f"fault {fault.fault} on {fault.target} did not bite" for fault in stage.faults if not fault.bit]
    if first is None:
        reasons.append("no message of an instruction given after the fault was accepted")
    wrong = counts.lost or counts.duplicated or counts.reordered
    outcome = Outcome.FAILED if wrong else Outcome.UNDECIDED if reasons else Outcome.PASSED
    return DrillResult(
        scenario=scenario.name,
        seed=seed,
        verdict=outcome.value,
        lost=counts.lost,
        duplicated=counts.duplicated,
        reordered=counts.reordered,
        in_doubt=counts.in_doubt,
        submitted=counts.submitted,
        received=counts.received,
        detect_seconds=_between(stage.fault_at, stage.asked_at),
        promote_seconds=_between(stage.asked_at, stage.promoted_at),
        takeover_seconds=_between(stage.asked_at, first),
        outage_seconds=_between(stage.fault_at, first),
        faults=tuple(FaultTold(f"{fault.fault} {fault.target}", fault.bit, fault.evidence) for fault in stage.faults),
        history="",
        report="",
        receiver=stage.layout.receiver_class,
        rate=stage.rate,
        seconds=round(seconds, 1),
        reasons=(*reasons, *counts.evidence),
    )


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 3)
