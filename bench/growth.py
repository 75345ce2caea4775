"""Does a record cost more when the history is long? The flow is measured again and again while its history grows.

    python bench/growth.py --marks 100000,1000000,10000000

One lab, one pipeline, never restarted. At each mark several equal loads are sent through; in between the history is
filled up by more of the same. Beside the records per second stands the processor time per record of all servers and of
the pipeline, which says more on a machine that does other things, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from zerotail.bench.flow import FlowSettings, make_pipelines, plan_lab
from zerotail.bench.pipeline import Bench, Pipeline
from zerotail.bench.processor import own_cpu_seconds
from zerotail.lab.process import processes_of, session_members
from zerotail.lab.up import temporary_lab


def used_by_part(bench: Bench, leader: int) -> dict[str, float]:
    """Processor seconds of each server, and of the pipeline by program."""
    used: defaultdict[str, float] = defaultdict(float)
    for process in processes_of(bench.layout.path):
        used[process.part] += own_cpu_seconds(process.pid)
    for pid in session_members(leader):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        name = "emitter" if b"emitter" in command else Path(command[0].decode()).name
        used[f"pipeline {name}"] += own_cpu_seconds(pid)
    return used


def measure(bench: Bench, pipeline: Pipeline, leader: int, count: int) -> tuple[float, dict[str, float]]:
    """Records per second, and microseconds of processor time per record of each part."""
    before = used_by_part(bench, leader)
    seconds = bench.load(pipeline, count)
    used = used_by_part(bench, leader)
    return count / seconds, {part: (spent - before.get(part, 0.0)) / count * 1e6 for part, spent in used.items()}


def summary(rounds: list[tuple[float, dict[str, float]]]) -> dict[str, Any]:
    """Medians: records per second, cost in all and by part; and each round as it was measured."""
    parts = sorted({part for _, cost in rounds for part in cost})
    return {
        "records_per_second": round(statistics.median(speed for speed, _ in rounds)),
        "cpu_microseconds": round(statistics.median(sum(cost.values()) for _, cost in rounds), 1),
        "rounds": [(round(speed, 1), round(sum(cost.values()), 2)) for speed, cost in rounds],
        "by_part": {part: round(statistics.median(cost.get(part, 0.0) for _, cost in rounds), 1) for part in parts},
    }


def main() -> None:
    """Measure at each mark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--marks", default="100000,1000000,10000000", help="lengths of the history")
    parser.add_argument("--count", type=int, default=200_000, help="instructions of one measurement")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    settings = FlowSettings()
    found: list[dict[str, Any]] = []
    with temporary_lab(lambda folder: plan_lab(settings, folder)) as layout:
        bench = Bench(layout, settings.accounts, settings.partitions, warm_up=50_000)
        pipeline, _ = make_pipelines(layout, settings)
        with bench.running(pipeline) as leader:
            history = bench.warm_up
            for mark in map(int, options.marks.split(",")):
                while history < mark:
                    step = min(1_000_000, mark - history)
                    bench.load(pipeline, step)
                    history += step
                rounds = [measure(bench, pipeline, leader, options.count) for _ in range(options.repeat)]
                found.append({"history": history, **summary(rounds)})
                history += options.count * options.repeat
                print(f"history {found[-1]}", file=sys.stderr)
    growth = found[-1]["cpu_microseconds"] / found[0]["cpu_microseconds"]
    print(json.dumps({"marks": found, "cost_ratio": round(growth, 3)}))


if __name__ == "__main__":
    main()
