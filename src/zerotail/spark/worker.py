"""Spark's Python workers: what each does once before its first task, and how to have them ready before it counts.

Spark's daemon collects garbage behind every task, over everything that a worker has imported: some 80 ms of processor
time, several times as much as a small batch costs otherwise. What is there when the first task begins stays for ever,
so it is taken out of the collector's sight.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql import SparkSession

_ROUNDS = 3


@cache
def settle_worker() -> None:
    """Once per worker, with everything imported."""
    pa.array([0])  # the first list that becomes an array imports pandas
    gc.collect()
    gc.freeze()


def warm_up(spark: SparkSession) -> None:
    """Have workers started and code loaded: the first job of a cold session takes seconds."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import zerotail.spark.follower_query
        import zerotail.spark.producer_query
        import zerotail.spark.stage_query  # noqa: F401

        settle_worker()
        yield from batches

    for _ in range(_ROUNDS):
        spark.range(1000).repartition(2).mapInArrow(work, "id bigint").collect()
