"""One budget of time shared by a chain of waits.

A deadline is made once, where a command or a test begins, and handed down; each wait below takes what is left of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from zerotail.errors import Unavailable, ZerotailError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The moment `seconds` from now."""
        return cls(time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        """What is left of the budget; never below zero."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the budget is used up."""
        return self.seconds_left == 0.0


def wait_until(
    what: str,
    probe: Callable[[], T | None],
    deadline: Deadline,
    *,
    every_seconds: float = 0.02,
    late: type[ZerotailError] = Unavailable,
) -> T:
    """Call `probe` until it answers something true, and return that; `late` when the deadline passes.

    `what` completes the sentence "not in time: …". An act that has begun is late with `Unfinished`.
    """
    while True:
        answer = probe()
        if answer:
            return answer
        if deadline.passed:
            raise late(f"not in time: {what}")
        time.sleep(min(every_seconds, deadline.seconds_left))
