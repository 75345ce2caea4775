"""Watch a group until its verdict is clear: a group that has nothing to do, or nobody to do it, shows that soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from zerotail.consume.liveness import GroupVerdict, Liveness, Look, judge

WATCH_SECONDS = 16.0
"""Three times as long as Kafka's clients wait before they store a position, unless they are told otherwise."""
_EVERY_SECONDS = 1.0
_CLEAR_LOOKS = 3
_CLEAR = (Liveness.IDLE, Liveness.STOPPED)


class Watch(Protocol):
    """Whoever can look at a group."""

    def look(self, clock: Callable[[], float]) -> Look:
        """The group now."""


def watch_group(
    watch: Watch, group: str, seconds: float = WATCH_SECONDS, tell: Callable[[int], None] = lambda _: None
) -> GroupVerdict:
    """The verdict on a group after some seconds, or sooner when it is clear."""
    looks = [watch.look(time.monotonic)]
    began = time.monotonic()
    while True:
        time.sleep(min(_EVERY_SECONDS, seconds))
        looks.append(watch.look(time.monotonic))
        tell(len(looks))
        verdict = judge(group, looks)
        is_clear = len(looks) >= _CLEAR_LOOKS and verdict.liveness in _CLEAR
        if is_clear or time.monotonic() - began >= seconds:
            return verdict
