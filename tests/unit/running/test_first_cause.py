"""Of a failed query the innermost cause is told."""

from __future__ import annotations

import pytest

from zerotail.spark.kept_query import first_cause

pytestmark = pytest.mark.fast

PROXY = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "call.py", line 1, in on_batch
py4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 68.0 failed 1 times
\tat org.apache.spark.errors.SparkCoreErrors$.failed(SparkCoreErrors.scala:1)
"""


def test_the_innermost_cause_is_told() -> None:
    cause = "Caused by: java.lang.IllegalStateException: Cannot fetch record for offset 7 in 10000 milliseconds"
    assert first_cause(RuntimeError(f"{PROXY}{cause}\n\t... 3 more")) == cause.removeprefix("Caused by: ")


def test_without_a_cause_it_is_what_java_threw() -> None:
    assert first_cause(RuntimeError(PROXY)).startswith("org.apache.spark.SparkException: Job aborted")


def test_our_own_word_comes_first() -> None:
    ours = "zerotail.errors.Unavailable: Kafka did not acknowledge the records of cards"
    assert first_cause(RuntimeError(f"{PROXY}{ours}\nCaused by: java.io.IOException")) == ours


def test_a_plain_sentence_is_told_as_it_is() -> None:
    assert first_cause(RuntimeError("no such table\nat line 1")) == "no such table"
    assert first_cause(None) == "it ended without a reason"
    assert first_cause(RuntimeError("")) == "no reason given"
