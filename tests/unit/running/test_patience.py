"""Somebody's code that hangs is interrupted; one that does not let itself be interrupted takes its process with it."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress

import pytest

from zerotail.flow.records import make_records
from zerotail.spark.patience import SlowError, TransformTimeoutError, interrupting

pytestmark = pytest.mark.fast


def late() -> TransformTimeoutError:
    return TransformTimeoutError(0.2)


def sleeps(row: bytes) -> bytes:
    if row == b"bad":
        time.sleep(60)
    return row


def test_a_row_at_which_a_transform_hangs_is_named_and_those_in_front_of_it_are_made() -> None:
    made: list[bytes] = []
    with interrupting(0.2, late):
        reason = make_records(sleeps, [b"one", b"two", b"bad", b"three"], made)
    assert made == [b"one", b"two"]
    assert reason.startswith("the transform cannot take it: TransformTimeoutError: the transform was at this row")


def test_a_transform_that_goes_on_after_every_error_is_interrupted_all_the_same() -> None:
    def tries_for_ever(_row: bytes) -> bytes:
        while True:
            with suppress(Exception):
                time.sleep(60)

    with interrupting(0.2, late):
        assert "TransformTimeoutError" in make_records(tries_for_ever, [b"one"], [])


def test_who_is_told_to_give_up_is_told_so_behind_what_was_made() -> None:
    made: list[bytes] = []
    with pytest.raises(SlowError), interrupting(0.2, SlowError):
        make_records(sleeps, [b"one", b"bad"], made)
    assert made == [b"one"]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), RecursionError(), MemoryError(), StopIteration()])
def test_whatever_a_transform_raises_is_its_own_fault(error: BaseException) -> None:
    def raises(_row: bytes) -> bytes:
        raise error

    assert type(error).__name__ in make_records(raises, [b"one"], [])


@pytest.mark.parametrize("gives", [None, "text", 7, ["bytes"]])
def test_what_is_no_bytes_is_no_record(gives: object) -> None:
    assert "not bytes" in make_records(lambda _row: gives, [b"one"], [])  # type: ignore[arg-type, return-value]


_STUBBORN = """
import time
from zerotail.flow.records import make_records
from zerotail.spark.patience import TransformTimeoutError, interrupting

def never_ends(row):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def hears_nothing(row):
    return sum(iter(int, 1))

with interrupting(0.2, lambda: TransformTimeoutError(0.2), 0.3):
    make_records({}, [b"one"], [])
"""


@pytest.mark.parametrize("code", ["never_ends", "hears_nothing"])
def test_code_that_goes_on_whatever_is_raised_in_it_ends_with_its_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", _STUBBORN.format(code)], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done
    assert b"Timeout" in done.stderr
