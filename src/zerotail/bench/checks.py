"""`zerotail bench checks`: what the checks on the way of a record cost, as a share of the flow.

Rounds of the same pipeline as in `bench flow`, with the checks and without, in turns and each first as often as the
other, in one lab. Seconds of the clock say what a neighbour on the machine leaves; seconds of the processors, of all
processes of the pipeline together, say what a record costs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from zerotail.bench.checks_page import goals_of
from zerotail.bench.flow import FlowSettings, make_pipelines, plan_lab
from zerotail.bench.goals import reached_of
from zerotail.bench.pipeline import WARM_UP, Bench, Pipeline
from zerotail.bench.processor import cpu_seconds
from zerotail.bench.result import ChecksCost, ChecksRound
from zerotail.lab.up import temporary_lab

_UNCHECKED = Path(__file__).with_name("unchecked")
_SAID = "without the checks"
"""By whoever runs without: a round that was meant to be one and is none would be worse than none."""


@dataclass(frozen=True, slots=True)
class _Load:
    records_per_second: float
    processor_seconds: float


def bench_checks(count: int, rounds: int, tell: Callable[[str], None]) -> ChecksCost:
    """Measure in a lab of its own."""
    settings = FlowSettings(count, rounds)
    tell("bringing up two sites")
    with temporary_lab(partial(plan_lab, settings)) as layout:
        bench = Bench(layout, settings.accounts, settings.partitions, min(WARM_UP, count))
        checked, _ = make_pipelines(layout, settings)
        unchecked = replace(checked, path=str(_UNCHECKED), ready=(*checked.ready, _SAID))
        found = []
        for number in range(1, rounds + 1):
            pair = (checked, unchecked) if number % 2 else (unchecked, checked)
            loads = {one.path: _load(bench, one, count) for one in pair}
            one = _round(loads[checked.path], loads[unchecked.path])
            tell(
                f"round {number} of {rounds}: {one.records_per_second:,.0f}/s and {one.unchecked_per_second:,.0f}/s "
                f"without, processor time {one.processor_ratio:.3f} times"
            )
            found.append(one)
    ratio = statistics.median(one.processor_ratio for one in found)
    speed = statistics.median(one.records_per_second / one.unchecked_per_second for one in found)
    cost = ChecksCost(count, round(100 * (ratio - 1), 2), round(100 * (1 - speed), 2), tuple(found), {})
    return replace(cost, reached=reached_of(goals_of(cost)))


def _load(bench: Bench, pipeline: Pipeline, count: int) -> _Load:
    with bench.running(pipeline) as process:
        before = cpu_seconds(process)
        seconds = bench.load(pipeline, count)
        return _Load(count / seconds, cpu_seconds(process) - before)


def _round(checked: _Load, unchecked: _Load) -> ChecksRound:
    return ChecksRound(
        round(checked.records_per_second, 1),
        round(unchecked.records_per_second, 1),
        round(checked.processor_seconds, 2),
        round(unchecked.processor_seconds, 2),
    )
