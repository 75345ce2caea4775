"""Progress on stderr: a live list of steps on a terminal that can redraw, one line per step elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TextIO

from zerotail.cli.output import console, say

Tell = Callable[[str, bool], None]


def redraws(stream: TextIO) -> bool:
    """Whether lines once shown can be changed."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class StepsDisplay:
    """Told of steps by a call, and of what the one that is under way waits for."""

    tell: Tell
    say: Callable[[str], None]

    def __call__(self, step: str, done: bool) -> None:
        self.tell(step, done)


@contextmanager
def steps_display(title: str) -> Iterator[StepsDisplay]:
    """A function to tell `(step, done)`; steps may run side by side and be told from any thread."""
    if not redraws(sys.stderr):
        yield _plain_lines(title)
        return
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(sys.stderr)) as progress:
        tasks = {}

        def tell(step: str, done: bool) -> None:
            if not done:
                tasks[step] = progress.add_task(step, total=1)
            else:
                progress.update(tasks[step], completed=1, description=step)

        def say_in_last(line: str) -> None:
            under_way = [step for step, task in tasks.items() if not progress.tasks[task].finished]
            if under_way:
                progress.update(tasks[under_way[-1]], description=escape(line))
            else:
                progress.console.print(escape(line))

        yield StepsDisplay(tell, say_in_last)


def _plain_lines(title: str) -> StepsDisplay:
    began = time.monotonic()
    lock = Lock()

    def say_line(line: str) -> None:
        with lock:
            say(f"{title}: {line}")

    def tell(step: str, done: bool) -> None:
        if done:
            say_line(f"{step} ready after {time.monotonic() - began:.1f} s")

    return StepsDisplay(tell, say_line)


@contextmanager
def count_display(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function to tell how many of `total` are done: a bar on a terminal, else a line each second."""
    if not redraws(sys.stderr):
        yield _plain_count(title, total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr)) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


def _plain_count(title: str, total: int) -> Callable[[int], None]:
    told_at = time.monotonic()

    def tell(done: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at >= 1.0:
            told_at = time.monotonic()
            say(f"{title}: {done} of {total}")

    return tell


@contextmanager
def current_line() -> Iterator[Callable[[str], None]]:
    """A function to tell what is going on now: one line on a terminal that is gone in the end, else nothing."""
    if not redraws(sys.stderr):
        yield lambda _line: None
        return
    with console(sys.stderr).status("") as status:
        yield lambda line: status.update(line.replace("[", r"\["))
