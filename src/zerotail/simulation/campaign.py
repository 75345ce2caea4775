"""Many runs: seeds in order, over several processes, until enough crashes were survived or a rule broke.

The quick judge looks at every run, the full checker at a sample of those that it lets pass. Seeds are
handed out in blocks, and results are added up in the order of the blocks, so that the outcome does not
depend on which process was faster.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.pool import AsyncResult, Pool

from zerotail.simulation import bugs
from zerotail.simulation.history import check_run
from zerotail.simulation.judge import Watch, judge
from zerotail.simulation.plan import Plan, draw
from zerotail.simulation.run import Run
from zerotail.simulation.violation import Violation

BLOCK = 40
SAMPLE = 10
"""One run in so many is also judged by the full checker."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that broke a rule."""

    plan: Plan
    violations: tuple[Violation, ...]

    @property
    def rule(self) -> str:
        """The first rule that broke."""
        return self.violations[0].rule


@dataclass(slots=True)
class Tally:
    """What many runs came to."""

    runs: int = 0
    crashes: int = 0
    steps: int = 0
    checked: int = 0
    """Runs that the full checker judged, too."""
    seconds: float = 0.0
    trace: int = 0
    """A number for everything that happened, in order: equal numbers, equal runs."""
    reached: set[int] = field(default_factory=set)
    marks: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the results of more runs."""
        self.runs += other.runs
        self.crashes += other.crashes
        self.steps += other.steps
        self.checked += other.checked
        self.trace = _folded(self.trace, other.trace)
        self.reached |= other.reached
        for name, count in other.marks.items():
            self.marks[name] = self.marks.get(name, 0) + count
        self.failures += other.failures

    def take(self, plan: Plan, run: Run, found: list[Violation], *, checked: bool) -> None:
        """Add one run."""
        schedule = run.schedule
        self.runs += 1
        self.checked += checked
        self.crashes += schedule.crashes
        self.steps += schedule.step
        self.trace = _folded(self.trace, schedule.trace)
        self.reached |= schedule.reached
        for name, number in schedule.marks.items():
            self.marks[name] = self.marks.get(name, 0) + number
        if found:
            self.failures.append(Failure(plan, tuple(found)))


def _folded(trace: int, more: int) -> int:
    return (trace * 1_000_003 + more) & ((1 << 61) - 1)


def run_plan(plan: Plan, *, story: list[str] | None = None, full: bool = False) -> tuple[Run, list[Violation]]:
    """One run and what is wrong with it; `full` also asks the checker about what passes."""
    run = Run(plan)
    watch = Watch(run.world)
    run.world.witness = watch
    run.schedule.story = story
    watch.keep = full
    run.go()
    found = judge(run, watch)
    if full and not found and not (plan.errant or plan.given or plan.careless):  # no clients as the checker knows
        found = check_run(run, watch)
    return run, found


def run_block(first: int, count: int, bug: str | None = None) -> Tally:
    """The seeds of one block."""
    tally = Tally()
    with bugs.planted(bug) as planted:
        for seed in range(first, first + count):
            plan = draw(seed) if planted is None else planted.narrowed(draw(seed))
            full = seed % SAMPLE == 0
            run, found = run_plan(plan, full=full)
            tally.take(plan, run, found, checked=full)
    return tally


def campaign(
    seed: int,
    *,
    crashes: int = 0,
    runs: int = 0,
    processes: int = 1,
    bug: str | None = None,
    stop_at_failure: bool = False,
    progress: bool = False,
) -> Tally:
    """Run seeds from `seed` on until so many crashes, or so many runs, are done."""
    started = time.monotonic()
    tally = Tally()
    blocks = ((first, count, bug) for first, count in _blocks(seed, runs))
    results = _in_parallel(blocks, processes) if processes > 1 else (run_block(*block) for block in blocks)
    for part in results:
        tally.add(part)
        tally.seconds = time.monotonic() - started
        if progress:
            _progress(tally)
        if (crashes and tally.crashes >= crashes) or (stop_at_failure and tally.failures):
            break
    if progress:
        sys.stderr.write("\n")
    return tally


def _blocks(seed: int, runs: int) -> Iterator[tuple[int, int]]:
    """First seed and number of seeds of each block; without end when no number of runs is given."""
    first = seed
    while not runs or first < seed + runs:
        yield first, min(BLOCK, seed + runs - first) if runs else BLOCK
        first += BLOCK


def _in_parallel(blocks: Iterator[tuple[int, int, str | None]], processes: int) -> Iterator[Tally]:
    """The results of blocks in order, a few of them ahead; what nobody asks for any more is dropped."""
    pool: Pool = multiprocessing.get_context("fork").Pool(processes)
    try:
        waiting: deque[AsyncResult[Tally]] = deque()
        for block in blocks:
            waiting.append(pool.apply_async(run_block, block))
            if len(waiting) > 3 * processes:
                yield waiting.popleft().get()
        while waiting:
            yield waiting.popleft().get()
    finally:
        pool.terminate()
        pool.join()


def find_bug(name: str, *, seconds: float = 60.0) -> Failure | None:
    """Look for a planted bug, from its seed on, until a run fails by one of the rules that it breaks; for so many
    seconds of this process, whatever else the machine does meanwhile.
    """
    bug = bugs.BUGS[name]
    end = time.process_time() + seconds
    seed = bug.seed
    while time.process_time() < end:
        for failure in run_block(seed, 1, name).failures:
            if failure.rule in bug.rules:
                return failure
        seed += 1
    return None


def _progress(tally: Tally) -> None:
    sys.stderr.write(
        f"\r{tally.runs} runs, {tally.crashes} crashes, {tally.seconds:.0f} s, {len(tally.failures)} failed "
    )
    sys.stderr.flush()
