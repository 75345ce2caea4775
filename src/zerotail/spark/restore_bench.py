"""Restoring order through Spark against a plain read of the same topic through Spark, in one session, alternately.

Both pass every record through one `mapInArrow` and write it nowhere. The plain one hands on what it got; ours puts the
records in order and proves them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zerotail.bench.restore_result import SparkRound
from zerotail.restore import Place
from zerotail.restore.place import read_recorded
from zerotail.spark.restoring import read_topic, records_in_order, records_sorted
from zerotail.spark.session import session_for_a_look
from zerotail.spark.worker import settle_worker


def measure_spark(places: Sequence[Place], rounds: int, tell: Callable[[str], None]) -> list[SparkRound]:
    """Rounds of each way, behind one that warms up."""
    found = []
    with session_for_a_look() as spark:
        topic = read_recorded(places[0]).topic
        for number in range(rounds + 1):
            plain = _seconds(_plain(spark, places, topic))
            ours = _seconds(records_in_order(spark, places))
            ordered = _seconds(records_sorted(spark, places))
            if number:
                tell(f"  through Spark: in order {ours:.2f} s, sorted {ordered:.2f} s, plain {plain:.2f} s")
                found.append(SparkRound(round(plain, 3), round(ours, 3), round(ordered, 3)))
    return found


def _plain(spark: SparkSession, places: Sequence[Place], topic: str) -> DataFrame:
    schema = "partition int, zt binary, offset long, value binary"
    return read_topic(spark, places, topic).mapInArrow(_hand_on, schema)


def _hand_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    settle_worker()
    yield from batches


def _seconds(frame: DataFrame) -> float:
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began
