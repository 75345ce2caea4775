"""A handler or a transform that hangs is interrupted, at the record at which it hangs (E18).

A timer of the process looks a few times a second at which record the code is; nothing is done per record. What it
raises there ends the record as any other error of that code would. Code that never comes back to Python hears no
timer, and one that catches what is raised in it goes on: the whole process is ended then, by a thread that needs
nothing of Python's, and whoever started it finds out.

The timer runs while somebody's code may run, and not while a database or Kafka is waited for.
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
from typing import TYPE_CHECKING, Any, TypeVar

from zerotail import ports
from zerotail.flow.apply import open_order
from zerotail.flow.records import make_records
from zerotail.handler import Interruption, apply_in_order

if TYPE_CHECKING:
    from zerotail.wiring import SiteAdapters

T = TypeVar("T")
_RUNS_ITS_CODE = frozenset({open_order.__code__, apply_in_order.__code__, make_records.__code__})
_LOOKS = 4
_LONGEST_SECONDS = 0.25
DEAF_SECONDS = 2.0
"""So much longer has code that hears nothing."""
_PAUSE_SECONDS = 0.02


class SlowError(Interruption):
    """A record takes longer than others may be kept waiting; whatever the handler catches, it does not catch this."""


class HandlerTimeoutError(BaseException):
    """A record takes longer than it may. A handler that goes on whatever `Exception` it meets does not catch it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the handler was at this record for more than {seconds:g} s")


class TransformTimeoutError(BaseException):
    """A row takes longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the transform was at this row for more than {seconds:g} s")


def run_within(story: ports.Story[T], adapters: SiteAdapters, seconds: float, late: Callable[[], BaseException]) -> T:
    """Run a story to its end; `late` is raised inside a record at which the handler is for so long."""
    answer: Any = None
    while True:
        try:
            with interrupting(seconds, late):
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
def interrupting(
    seconds: float, late: Callable[[], BaseException], deaf_seconds: float = DEAF_SECONDS
) -> Iterator[None]:
    """While the block runs `late` is raised inside a record at which somebody's code is for so long."""
    if current_thread() is not main_thread():
        yield  # signals are heard there only
        return
    at: tuple[int, int] | None = None
    since, told = 0.0, False

    def end_unless_heard(within: float) -> None:
        faulthandler.dump_traceback_later(within, exit=True, file=sys.__stderr__ or sys.stderr)

    def look(_number: int, frame: FrameType | None) -> None:
        nonlocal at, since, told
        now, found = time.monotonic(), _record_of(frame)
        if found is None or found != at:
            at, since, told = found, now, False
        elif told:
            return  # it has caught what was raised, and is still there
        elif now - since >= seconds:
            told = True
            end_unless_heard(deaf_seconds)
            raise late()
        end_unless_heard(seconds + deaf_seconds)

    every = min(seconds / _LOOKS, _LONGEST_SECONDS)
    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    end_unless_heard(seconds + deaf_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def _record_of(frame: FrameType | None) -> tuple[int, int] | None:
    """At which record somebody's code is, if it is at one."""
    while frame is not None:
        if frame.f_code in _RUNS_ITS_CODE:
            return id(frame), frame.f_locals.get("place", -1)
        frame = frame.f_back
    return None
