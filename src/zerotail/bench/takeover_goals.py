"""What takeovers are to reach, and what was found."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.bench.goals import Goal
from zerotail.bench.result import TakeoverResult

TARGET_MEDIAN_SECONDS = 2.0
TARGET_WORST_SECONDS = 5.0
TARGET_GROWTH = 1.5
"""Medians over the longest and the shortest history may differ by so much: the machine is noisy."""
WARM_MESSAGES = 5_000
"""A standby that says that it is warm has just started, and still compiles: it follows so many before it counts."""


def goals_of(found: TakeoverResult) -> Iterator[Goal]:
    """Over all takeovers."""
    median, worst = found.takeover_seconds_median, found.takeover_seconds_worst
    yield Goal(
        "exactly_once",
        "exactly once, counted by the receiver",
        f"{found.lost} lost, {found.duplicated} duplicated",
        all(one.exactly_once for one in found.judged),
    )
    yield Goal(
        "takeover_seconds_median",
        f"a median of at most {TARGET_MEDIAN_SECONDS:g} s",
        f"{median:.2f} s over {len(found.rounds)} takeovers",
        median <= TARGET_MEDIAN_SECONDS,
    )
    yield Goal(
        "takeover_seconds_worst",
        f"none longer than {TARGET_WORST_SECONDS:g} s",
        f"the worst {worst:.2f} s",
        worst <= TARGET_WORST_SECONDS,
    )
    if len(found.medians_by_history) > 1:  # one length says nothing about another
        yield Goal(
            "flat",
            f"the longest history takes at most {TARGET_GROWTH:g} times as long as the shortest",
            f"{found.growth:.2f} times",
            found.growth <= TARGET_GROWTH,
        )
