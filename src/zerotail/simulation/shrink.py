"""A failure made small, and told as a story.

A plan is a list of faults and a few sizes. Faults are taken out, first many at a time, and sizes made
smaller, as long as the same rule still breaks. What is left is run once more with somebody listening.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zerotail.simulation import bugs
from zerotail.simulation.campaign import Failure, run_plan
from zerotail.simulation.plan import Plan

ATTEMPTS = 2000

_QUIET = (
    "ReadFeed ->",
    "PollRecords ->",
    "ReadLane ->",
    "ReadHead ->",
    "LoadState ->",
    "ReadLogEnd ->",
    "FindPlace ->",
    "ObserveDrained ->",
    "ReadJournal ->",
    "RecordStep ->",
)


def shrink(failure: Failure, bug: str | None = None) -> Failure:
    """The smallest plan found that breaks the same rule."""
    best = failure
    left = ATTEMPTS
    improved = True
    while improved and left > 0:
        improved = False
        for plan in _smaller(best.plan):
            left -= 1
            again = _fails(plan, failure.rule, bug)
            if again is not None:
                best = again
                improved = True
                break
            if left <= 0:
                break
    return best


def _fails(plan: Plan, rule: str, bug: str | None) -> Failure | None:
    with bugs.planted(bug):
        _, found = run_plan(plan)
    return Failure(plan, tuple(found)) if found and found[0].rule == rule else None


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans that are a little smaller: fewer faults first, then smaller sizes."""
    faults = plan.faults
    size = max(1, len(faults) // 2)
    while faults:
        for start in range(0, len(faults), size):
            yield replace(plan, faults=faults[:start] + faults[start + size :])
        if size == 1:
            break
        size = max(1, size // 2)
    last = faults[-1].step + 1 if faults else 1
    if last < plan.horizon:
        yield replace(plan, horizon=last)
    if plan.two_stages:
        yield replace(plan, two_stages=False)
    if plan.synchronous:
        yield replace(plan, synchronous=False)
    for name in ("partitions", "clients", "producers", "instructions"):
        value = getattr(plan, name)
        if value > 1:
            yield replace(plan, **{name: value // 2})
            yield replace(plan, **{name: value - 1})


def tell(failure: Failure, bug: str | None = None) -> list[str]:
    """What happened in a run, line by line, without the looks that found nothing."""
    story: list[str] = []
    with bugs.planted(bug):
        run_plan(failure.plan, story=story)
    lines = [line for line in story if not any(quiet in line for quiet in _QUIET)]
    return [*lines, *(f"       {one.rule}: {one.text}" for one in failure.violations)]
