"""Spark's Python workers: what each does once before its first task, and how to have them ready before it counts.

Spark's daemon collects garbage behind every task, over everything that a worker has imported: some 80 ms of processor
time, several times as much as a small batch costs otherwise. What is there when the first task begins stays for ever,
so it is taken out of the collector's sight.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module

import pyarrow as pa
from pyspark.sql import SparkSession

CODE_OF_TASKS = (
    "pyspark.worker",
    "zerotail.spark.follower_query",
    "zerotail.spark.instruction_source",
    "zerotail.spark.producer_query",
    "zerotail.spark.stage_query",
)
_ROUNDS = 3


def load_code() -> None:
    """Import everything that tasks use."""
    for name in CODE_OF_TASKS:
        import_module(name)


@cache
def settle_worker() -> None:
    """Once, with everything imported: by our daemon for all workers, under Spark's own daemon by each of them."""
    pa.array([0])  # the first list that becomes an array imports pandas
    gc.collect()
    gc.freeze()


def warm_up(spark: SparkSession) -> None:
    """Have workers started and code loaded: the first job of a cold session takes seconds."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        load_code()
        settle_worker()
        yield from batches

    for _ in range(_ROUNDS):
        spark.range(1000).repartition(2).mapInArrow(work, "id bigint").collect()
