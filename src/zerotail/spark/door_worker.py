"""The process that makes records of rows which others must not wait for (`door.py`), one after the other.

It says which row comes next before the transform gets it: whoever finds it dead knows of which row.
"""

from __future__ import annotations

import pickle
import sys
import time
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from zerotail.core.record import digest_of
from zerotail.errors import ZerotailError
from zerotail.flow.records import make_records
from zerotail.postgres.feed_arrow import read_rows
from zerotail.postgres.poison import Unfit
from zerotail.spark.own_process import answers_to_the_starter
from zerotail.spark.patience import TransformTimeoutError, interrupting
from zerotail.spark.row_sender import DEAF_SECONDS, Rows, append

_AT_ONCE, _AT_ONCE_SECONDS = 256, 0.2


@dataclass(frozen=True, slots=True)
class Errand:
    """Rows from `first` up to but without `next_serial`."""

    rows: Rows
    first: int
    next_serial: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The row that the transform gets next."""

    serial: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """How many were sent, and the row at which it ended, if it did; `problem`, when it could not go on."""

    sent: int
    unfit: Unfit | None
    problem: str = ""


def main() -> None:
    """Carry out one errand."""
    answers = answers_to_the_starter()
    errand: Errand = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    sent, unfit, problem = 0, None, ""
    wanted = errand.rows
    try:
        for rows in read_rows(wanted.dsn, wanted.producer, wanted.partition, errand.first, errand.next_serial):
            some, unfit = _carry_out(wanted, rows, answers)
            sent += some
            if unfit is not None:
                break
    except ZerotailError as error:
        problem = error.message
    _tell(answers, Finished(sent, unfit, problem))


def _carry_out(wanted: Rows, rows: pa.RecordBatch, answers: BinaryIO) -> tuple[int, Unfit | None]:
    values, serials = rows.column("value").to_pylist(), rows.column("serial").to_pylist()
    epochs = rows.column("epoch").to_pylist()
    transform, seconds = wanted.route.transform, wanted.route.transform_seconds
    done, made, since, reason = 0, list[bytes](), time.monotonic(), ""
    for place, value in enumerate(values):
        _tell(answers, Begun(serials[place], digest_of(value)))
        with interrupting(seconds, lambda: TransformTimeoutError(seconds), DEAF_SECONDS):
            reason = make_records(transform or bytes, [value], made)
        full = len(made) >= _AT_ONCE or time.monotonic() - since > _AT_ONCE_SECONDS
        if full or reason or place == len(values) - 1:
            sent = append(wanted, values[done:], made, serials[done:], epochs[done:])
            done, made, since = done + sent.count, [], time.monotonic()
            if sent.unfit is not None:
                return done, sent.unfit
        if reason:
            return done, wanted.unfit(serials[place], value, reason)
    return done, None


def _tell(answers: BinaryIO, what: Begun | Finished) -> None:
    pickle.dump(what, answers)
    answers.flush()
