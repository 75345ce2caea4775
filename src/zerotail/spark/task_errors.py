"""Errors of ours that happen inside a task, told by the driver as what they are.

Spark hands an error of a Python worker on as text. A task says in that text, between two marks, which kind of error it
was and everything that belongs to it; the driver reads it there and raises the same again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec
from pyspark.errors import PySparkException

from zerotail.errors import Broken, Misused, Refused, Unavailable, Unfinished, ZerotailError

T = TypeVar("T")
WORKER_DIED = "Python worker exited unexpectedly"
"""What Spark says of a task whose process is gone."""
_KINDS = {kind.__name__: kind for kind in (Misused, Refused, Unavailable, Unfinished, Broken)}
_TOLD = re.compile(r"\[\[zerotail (.*?)\]\]", re.DOTALL)


class TaskError(Exception):
    """An error of ours on its way out of a task."""


class _Told(msgspec.Struct):
    kind: str
    message: str
    code: str
    why: str
    tries: list[str]


def telling_errors(batches: Iterator[T]) -> Iterator[T]:
    """The same batches; an error of ours that ends them leaves the task with all that belongs to it."""
    try:
        yield from batches
    except ZerotailError as error:
        kind = next(name for name, known in _KINDS.items() if isinstance(error, known))
        told = _Told(kind, error.message, error.code, error.why, list(error.tries))
        raise TaskError(f"{error.message} [[zerotail {msgspec.json.encode(told).decode()}]]") from error


@contextmanager
def errors_of_tasks() -> Iterator[None]:
    """Around whatever starts a job: what a task has told is raised as if it had happened here."""
    try:
        yield
    except PySparkException as error:
        found = find_told(str(error))
        if found is None:
            raise
        raise found from error


def find_told(text: str) -> ZerotailError | None:
    """The error that a task told in this text, None if there is none."""
    for marked in _TOLD.findall(text):
        # The text is a traceback, and shows the line that makes the mark as well.
        with suppress(msgspec.MsgspecError):
            told = msgspec.json.decode(marked, type=_Told)
            return _KINDS[told.kind](told.message, code=told.code, why=told.why, tries=told.tries)
    return None
