"""How far a query is behind, by what Spark says of its last batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.identity import Offset, PartitionNumber
from zerotail.spark.lag import last_offsets, records_between

pytestmark = pytest.mark.fast


def query(progress: Any) -> StreamingQuery:
    return cast(StreamingQuery, SimpleNamespace(lastProgress=progress))


@pytest.mark.parametrize("said", ['{"payments": {"0": 10, "1": 7}}', {"payments": {"0": 10, "1": 7}}])
def test_the_last_batch_says_where_it_ended_and_where_the_log_did(said: Any) -> None:
    progress = {"sources": [{"endOffset": said, "latestOffset": '{"payments": {"0": 30, "1": 7}}'}]}
    assert last_offsets(query(progress)) == ({0: 10, 1: 7}, {0: 30, 1: 7})


def test_before_the_first_batch_nothing_is_known() -> None:
    assert last_offsets(query(None)) is None
    assert last_offsets(query({"sources": [{"endOffset": None, "latestOffset": None}]})) is None


def test_only_what_was_not_reached_counts() -> None:
    first, second, third = PartitionNumber(0), PartitionNumber(1), PartitionNumber(2)
    reached = {first: Offset(10), second: Offset(50)}
    assert records_between(reached, {first: Offset(30), second: Offset(40), third: Offset(9)}) == 20
