"""An error of ours inside a task is the same error in the driver."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException

from zerotail.core.identity import Position
from zerotail.core.merge import missing_record
from zerotail.core.order import Order, Runs
from zerotail.errors import Broken, Refused
from zerotail.spark.task_errors import TaskError, errors_of_tasks, telling_errors

pytestmark = pytest.mark.fast


def failing(error: Exception) -> Iterator[int]:
    yield 1
    raise error


def text_of(error: Exception) -> str:
    """As Spark hands it on: a page with the traceback, and so with the line of the program that makes the mark."""
    with pytest.raises(TaskError) as told:
        list(telling_errors(failing(error)))
    traced = "".join(traceback.format_exception(told.value))
    return f"An exception was thrown from the Python worker:\n{traced}\n at org.apache.spark"


def test_its_kind_number_and_lines_to_type_come_through() -> None:
    text = text_of(Broken('segment 4 is [not] what "it" was', code="ZT641", why="because", tries=["one", "two"]))
    with pytest.raises(Broken, match="segment 4 is") as raised, errors_of_tasks():
        raise PySparkException(text)
    found = raised.value
    assert (found.message, found.code, found.why) == ('segment 4 is [not] what "it" was', "ZT641", "because")
    assert found.tries == ("one", "two")
    text = text_of(missing_record(Order(Runs.of([(1, 2)])), Position(1)))
    with pytest.raises(Refused, match="serial 2"), errors_of_tasks():
        raise PySparkException(text)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(PySparkException, match="out of memory"), errors_of_tasks():
        raise PySparkException("out of memory")
    with pytest.raises(ZeroDivisionError):
        list(telling_errors(failing(ZeroDivisionError())))
