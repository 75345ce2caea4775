"""A handler that hangs is interrupted, at the record at which it hangs (E18).

A timer of the process looks a few times a second at which record the handler is; nothing is done per record. What it
raises there ends the record as any other error of the handler would. Code that never comes back to Python hears no
timer: the whole process is ended then, by a thread that needs nothing of Python's, and whoever started it finds out.

The timer runs while the handler may run, and not while a database or Kafka is waited for.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, TypeVar

from zerotail import ports
from zerotail.flow.apply import open_order
from zerotail.handler import apply_in_order
from zerotail.wiring import SiteAdapters

T = TypeVar("T")
_ASKS_THE_HANDLER = frozenset({open_order.__code__, apply_in_order.__code__})
_LOOKS = 4
_LONGEST_SECONDS = 0.25
_DEAF_SECONDS = 2.0
_PAUSE_SECONDS = 0.02


class SlowError(BaseException):
    """A record takes longer than others may be kept waiting; whatever the handler catches, it does not catch this."""


class HandlerTimeoutError(Exception):
    """A record takes longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the handler was at this record for more than {seconds:g} s")


def run_within(story: ports.Story[T], adapters: SiteAdapters, seconds: float, late: Callable[[], BaseException]) -> T:
    """Run a story to its end; `late` is raised inside a record at which the handler is for so long."""
    answer: Any = None
    while True:
        try:
            with _interrupting(seconds, late):
                effect = story.send(answer)
        except StopIteration as ended:
            result: T = ended.value
            return result
        answer = None
        if isinstance(effect, ports.Pause):
            time.sleep(_PAUSE_SECONDS)
        else:
            answer = adapters.carry_out(effect)


@contextmanager
def _interrupting(seconds: float, late: Callable[[], BaseException]) -> Iterator[None]:
    if current_thread() is not main_thread():
        yield  # signals are heard there only
        return
    at: tuple[int, int] | None = None
    since = 0.0

    def end_unless_heard() -> None:
        faulthandler.dump_traceback_later(seconds + _DEAF_SECONDS, exit=True, file=sys.__stderr__ or sys.stderr)

    def look(_number: int, frame: FrameType | None) -> None:
        nonlocal at, since
        end_unless_heard()
        now, found = time.monotonic(), _record_of(frame)
        if found is None or found != at:
            at, since = found, now
        elif now - since >= seconds:
            since = now
            raise late()

    every = min(seconds / _LOOKS, _LONGEST_SECONDS)
    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    end_unless_heard()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def _record_of(frame: FrameType | None) -> tuple[int, int] | None:
    """At which record the handler is, if it is at one."""
    while frame is not None:
        if frame.f_code in _ASKS_THE_HANDLER:
            return id(frame), frame.f_locals.get("place", -1)
        frame = frame.f_back
    return None
