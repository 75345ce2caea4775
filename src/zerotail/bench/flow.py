"""`zerotail bench flow`: records per second from instruction rows to the receiver, and how long each takes.

Both pipelines run in one lab with both sites on this machine, one after the other, again and again: a round of ours, a
round of plain Spark. Rows are inserted inside the measured window, which ends when the receiver has the last message.
The ratio is taken within each round. Latency is measured at a fixed rate, on ours.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from zerotail.bench.flow_page import goals_of
from zerotail.bench.goals import reached_of
from zerotail.bench.latency import Latency, measure_latency
from zerotail.bench.pipeline import WARM_UP, Bench, Pipeline
from zerotail.bench.result import FlowBench, FlowResult
from zerotail.core.identity import StageName
from zerotail.lab.database import dsn
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.up import temporary_lab

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """How much is measured."""

    count: int = 1_000_000
    rounds: int = 3
    accounts: int = 20_000
    partitions: int = 1
    rate: float = 10_000.0
    latency_seconds: float = 20.0
    batch: int = 5_000


@dataclass(frozen=True, slots=True)
class Round:
    """One round of each pipeline."""

    records_per_second: float
    baseline_records_per_second: float

    @property
    def ratio(self) -> float:
        """Ours against the baseline."""
        return self.records_per_second / self.baseline_records_per_second


def bench_flow(settings: FlowSettings, tell: Tell, earlier: FlowBench | None = None) -> FlowBench:
    """Measure everything in a lab of its own; what an earlier run measured with other partitions stays."""
    new = _bench(settings, tell)
    others = [one for one in earlier.cases if one.partitions != new.partitions] if earlier else []
    cases = tuple(sorted([*others, new], key=lambda one: one.partitions))
    return FlowBench(cases, reached_of(goals_of(cases)))


def _bench(settings: FlowSettings, tell: Tell) -> FlowResult:
    tell("bringing up two sites")
    with temporary_lab(partial(plan_lab, settings)) as layout:
        # A try with a handful of instructions is not warmed up with many times as many.
        bench = Bench(layout, settings.accounts, settings.partitions, min(WARM_UP, settings.count))
        ours, plain = make_pipelines(layout, settings)
        rounds = []
        for number in range(1, settings.rounds + 1):
            one = Round(_throughput(bench, ours, settings), _throughput(bench, plain, settings))
            tell(
                f"round {number} of {settings.rounds}: {one.records_per_second:,.0f}/s, plain Spark "
                f"{one.baseline_records_per_second:,.0f}/s, ratio {one.ratio:.2f}"
            )
            rounds.append(one)
        latency = _latency(bench, ours, settings)
        tell(f"at {settings.rate:,.0f}/s: p50 {latency.p50:.2f} s, p99 {latency.p99:.2f} s")
    return _result(settings, rounds, latency)


def plan_lab(settings: FlowSettings, folder: Path) -> LabSettings:
    """The lab in which is measured."""
    return LabSettings(folder, receiver_class="R1", partitions=settings.partitions)


def make_pipelines(layout: Layout, settings: FlowSettings) -> tuple[Pipeline, Pipeline]:
    """The example as it is, and under other names for plain Spark."""
    own = layout.path / "east" / CONFIGURATION
    content: dict[str, Any] = yaml.safe_load(own.read_text())
    for producer in content["producers"].values():
        producer["serials"] = "given"
    for channel in content["channels"].values():
        channel["batch"] = settings.batch
    own.write_text(yaml.safe_dump(content))
    plain = layout.path / "east" / f"plain-{CONFIGURATION}"
    plain.write_text(yaml.safe_dump(_renamed(content)))
    return (
        Pipeline("zerotail", ("zerotail", "run", "all"), own, ("running stage", "running producers"), "bank"),
        Pipeline("plain", ("zerotail.bench.plain",), plain, ("running the plain pipeline",), "plain-bank"),
    )


def _renamed(content: dict[str, Any]) -> dict[str, Any]:
    """The same system with topics, producers and stages of its own."""

    def renamed(name: str) -> str:
        return f"plain-{name}"

    return {
        **content,
        "topics": {renamed(name): topic for name, topic in content["topics"].items()},
        "producers": {
            renamed(name): {**producer, "topic": renamed(producer["topic"])}
            for name, producer in content["producers"].items()
        },
        "stages": {
            renamed(name): {**stage, "consumes": renamed(stage["consumes"])}
            for name, stage in content["stages"].items()
        },
    }


def _throughput(bench: Bench, pipeline: Pipeline, settings: FlowSettings) -> float:
    with bench.running(pipeline):
        return settings.count / bench.load(pipeline, settings.count)


def _latency(bench: Bench, pipeline: Pipeline, settings: FlowSettings) -> Latency:
    with bench.running(pipeline):
        since = time.time()
        bench.load(pipeline, int(settings.rate * settings.latency_seconds), settings.rate)
        control = ReceiverControl(bench.layout.receiver_control_port)
        database = dsn(bench.layout.database("east"))
        return measure_latency(database, control, StageName("settle"), pipeline.channel, since)


def _result(settings: FlowSettings, rounds: list[Round], latency: Latency) -> FlowResult:
    speed = statistics.median(one.records_per_second for one in rounds)
    baseline = statistics.median(one.baseline_records_per_second for one in rounds)
    ratio = statistics.median(one.ratio for one in rounds)
    return FlowResult(
        records_per_second=round(speed, 1),
        baseline_records_per_second=round(baseline, 1),
        ratio=round(ratio, 3),
        latency_p50_seconds=round(latency.p50, 3),
        latency_p99_seconds=round(latency.p99, 3),
        latency_records_per_second=settings.rate,
        count=settings.count,
        accounts=settings.accounts,
        partitions=settings.partitions,
        rounds=tuple(
            {
                "records_per_second": round(one.records_per_second, 1),
                "baseline_records_per_second": round(one.baseline_records_per_second, 1),
                "ratio": round(one.ratio, 3),
            }
            for one in rounds
        ),
    )
