"""What a benchmark is to reach, what it found, and whether that is enough: a table, the same for every benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure that is wanted."""

    name: str
    """In the result's `reached`."""
    wanted: str
    found: str
    reached: bool


def table_of(goals: Iterable[Goal]) -> Iterator[str]:
    """The table, in Markdown: a goal that is missed says so where it stands."""
    yield "| goal | found | |"
    yield "|---|---|---|"
    for goal in goals:
        yield f"| {goal.wanted} | {goal.found} | {'reached' if goal.reached else '**not reached**'} |"


def reached_of(goals: Iterable[Goal]) -> dict[str, bool]:
    """By name."""
    return {goal.name: goal.reached for goal in goals}
