"""What a task has found broken is told by the driver as it was."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from zerotail.errors import Broken
from zerotail.spark.task_errors import TaskError, find_told, telling_errors


def test_an_error_is_found_in_the_traceback_that_spark_hands_on() -> None:
    def batches() -> Iterator[int]:
        yield 1
        raise Broken("segment 4 differs.", code="ZT641", why="because", tries=["zerotail journal verify"])

    with pytest.raises(TaskError) as raised:
        list(telling_errors(batches()))
    # It shows the lines of the program, too, and so the one that makes the mark.
    found = find_told("".join(traceback.format_exception(raised.value)))
    assert isinstance(found, Broken)
    assert (found.message, found.code, found.why, list(found.tries)) == (
        "segment 4 differs.",
        "ZT641",
        "because",
        ["zerotail journal verify"],
    )


@pytest.mark.parametrize("text", ["", "[[zerotail {told}]]", "[[zerotail {}]]"])
def test_where_no_task_has_told_anything_nothing_is_found(text: str) -> None:
    assert find_told(text) is None
