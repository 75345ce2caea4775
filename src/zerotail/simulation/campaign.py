"""Many runs: seeds in order, over several processes, until enough crashes were survived or a rule broke.

The quick judge looks at every run, the full checker at a sample of them and at every run that fails. Seeds
are handed out in blocks, and results are added up in the order of the blocks, so that the outcome does not
depend on which process was faster.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from zerotail.simulation import bugs
from zerotail.simulation.judge import Violation, Watch, judge
from zerotail.simulation.plan import Plan, draw
from zerotail.simulation.run import Run

BLOCK = 40
SAMPLE = 50
"""One run in so many is also judged by the full checker."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that broke a rule."""

    seed: int
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
    reached: set[int] = field(default_factory=set)
    marks: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the results of more runs."""
        self.runs += other.runs
        self.crashes += other.crashes
        self.steps += other.steps
        self.checked += other.checked
        self.reached |= other.reached
        for name, count in other.marks.items():
            self.marks[name] = self.marks.get(name, 0) + count
        self.failures += other.failures


def run_plan(
    plan: Plan, *, story: list[str] | None = None, full: bool = False
) -> tuple[Run, list[Violation]]:
    """One run and what is wrong with it; `full` also asks the checker."""
    run = Run(plan)
    watch = Watch(run.world)
    run.world.witness = watch
    run.schedule.story = story
    watch.keep = full
    run.go()
    found = judge(run, watch)
    if full:
        from zerotail.simulation.history import check_run

        found += check_run(run, watch)
    return run, found


def run_block(first: int, count: int, bug: str | None = None) -> Tally:
    """The seeds of one block."""
    tally = Tally()
    with bugs.planted(bug):
        for seed in range(first, first + count):
            full = seed % SAMPLE == 0 and bug is None
            run, found = run_plan(draw(seed), full=full)
            if found and not full:
                run, found = run_plan(draw(seed), full=True)
            schedule = run.schedule
            tally.runs += 1
            tally.checked += full or bool(found)
            tally.crashes += schedule.crashes
            tally.steps += schedule.step
            tally.reached |= schedule.reached
            for name, number in schedule.marks.items():
                tally.marks[name] = tally.marks.get(name, 0) + number
            if found:
                tally.failures.append(Failure(seed, tuple(found)))
    return tally


def _block(arguments: tuple[int, int, str | None]) -> Tally:
    return run_block(*arguments)


def campaign(
    seed: int,
    *,
    crashes: int = 0,
    runs: int = 0,
    processes: int = 1,
    bug: str | None = None,
    stop_at_failure: bool = False,
    seconds: float | None = None,
    quiet: bool = True,
) -> Tally:
    """Run seeds from `seed` on until so many crashes, or so many runs, are done."""
    started = time.monotonic()
    tally = Tally()
    blocks = ((first, BLOCK, bug) for first in _firsts(seed, runs))
    with _mapper(processes) as mapper:
        for part in mapper.imap(_block, blocks) if mapper else map(_block, blocks):
            tally.add(part)
            tally.seconds = time.monotonic() - started
            if not quiet:
                _progress(tally)
            enough = (crashes and tally.crashes >= crashes) or (runs and tally.runs >= runs)
            late = seconds is not None and tally.seconds > seconds
            if enough or late or (stop_at_failure and tally.failures):
                break
    if not quiet:
        sys.stderr.write("\n")
    return tally


def _firsts(seed: int, runs: int) -> Iterator[int]:
    first = seed
    while not runs or first < seed + runs:
        yield first
        first += BLOCK


class _Pool(AbstractContextManager["_Pool"]):
    """A pool that is ended, not waited for: blocks that nobody asks for any more are dropped."""

    def __init__(self, processes: int) -> None:
        self._pool = multiprocessing.get_context("fork").Pool(processes)
        self._limit = processes * 4

    def imap(self, function: object, items: Iterator[tuple[int, int, str | None]]) -> Iterator[Tally]:
        waiting = []
        for item in items:
            waiting.append(self._pool.apply_async(_block, (item,)))
            if len(waiting) >= self._limit:
                yield waiting.pop(0).get()
        for result in waiting:
            yield result.get()

    def __exit__(self, *_: object) -> None:
        self._pool.terminate()
        self._pool.join()


class _NoPool(AbstractContextManager[None]):
    def __exit__(self, *_: object) -> None:
        return None


def _mapper(processes: int) -> AbstractContextManager[_Pool | None]:
    return _Pool(processes) if processes > 1 else _NoPool()


def _progress(tally: Tally) -> None:
    sys.stderr.write(
        f"\r{tally.runs} runs, {tally.crashes} crashes, {tally.seconds:.0f} s, {len(tally.failures)} failed "
    )
    sys.stderr.flush()
