"""What does a pair cost that has nothing to do? Two sites, one active and one waiting, and no instruction for a while.

    python bench/idle.py --seconds 30

Everything that asks again and again (the gate, the outbox, the end of a log, the queue of submissions) asks for nothing
here, so what is used is the price of asking. It is counted in processors, by program, at the active site and at the
standby, once before the first takeover and, with `--epochs`, after so many handovers, each of which leaves an epoch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from zerotail.bench.processor import own_cpu_seconds
from zerotail.drill.acts import hand_over
from zerotail.drill.example import prepare_example
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.run import DrillSettings, new_stage
from zerotail.lab.layout import LabSettings
from zerotail.lab.process import processes_of
from zerotail.lab.up import temporary_lab

_REST_SECONDS = 15.0
"""Until code is compiled and rehearsals are rare."""
_PROGRAMS = ("emitter", "flow", "all", "spark.daemon", "pyspark.daemon", "source_runner")


def used_by_program(stage: Rehearsal) -> dict[tuple[str, int], float]:
    """Processor seconds so far of each process of the lab, by part and program."""
    return {
        (_name_of(process.part, process.pid), process.pid): own_cpu_seconds(process.pid)
        for process in processes_of(stage.layout.path)
    }


def _name_of(part: str, pid: int) -> str:
    if not part.endswith(".zerotail"):
        return part
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return part  # it is gone
    program = next((name for name in _PROGRAMS if any(word.endswith(name) for word in words)), Path(words[0]).name)
    return f"{part} {program}"


def idle_cost(stage: Rehearsal, seconds: float) -> dict[str, float]:
    """Processors in use by each program while nothing happens."""
    stage.business.stop()
    stage.drain()
    time.sleep(_REST_SECONDS)
    before, began = used_by_program(stage), time.monotonic()
    time.sleep(seconds)
    after, passed = used_by_program(stage), time.monotonic() - began
    used: defaultdict[str, float] = defaultdict(float)
    for key, spent in after.items():
        used[key[0]] += (spent - before.get(key, 0.0)) / passed
    return {name: round(share, 3) for name, share in sorted(used.items()) if share >= 0.001}


def change_roles(stage: Rehearsal, times: int) -> None:
    """Hand the active role over, so many times."""
    for _ in range(times):
        home = stage.active
        hand_over(stage, stage.standby)
        stage.processes[home].end()
        stage.start_site(home, standby=True)
        stage.wait_until_warm(home)


def main() -> None:
    """Measure at rest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--epochs", type=int, default=0, help="measure again after so many handovers")
    options = parser.parse_args()
    settings = DrillSettings(rate=200)
    found: list[dict[str, object]] = []
    with (
        temporary_lab(lambda where: LabSettings(where, partitions=2)) as layout,
        tempfile.TemporaryDirectory() as files,
    ):
        prepare_example(layout)
        stage = new_stage(layout, settings, Path(files), lambda line: print(line, file=sys.stderr))
        try:
            stage.begin()
            for handovers in sorted({0, options.epochs}):
                change_roles(stage, handovers)
                parts = idle_cost(stage, options.seconds)
                found.append({"handovers": handovers, "processors": round(sum(parts.values()), 2), "by_part": parts})
                print(json.dumps(found[-1]), file=sys.stderr)
        finally:
            stage.end()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
