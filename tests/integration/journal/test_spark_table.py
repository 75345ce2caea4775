"""The order journal as a Spark table: what a stage took, record by record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from support.journal import FIRST, POST, SECOND, SETTLE, Books, superuser
from zerotail.core.identity import StageName

pytestmark = pytest.mark.servers
Day = tuple[str, str, Books]


def table(spark: SparkSession, dsn: str, stage: str, **options: str) -> DataFrame:
    return spark.read.format("zerotail-journal").options(dsn=dsn, stage=stage, **options).load()


@pytest.mark.parametrize("stage", [SETTLE, POST])
@pytest.mark.parametrize("records_per_task", ["7", "1000000"])
def test_the_table_holds_what_the_stage_took_in_order(
    spark: SparkSession, day: Day, stage: StageName, records_per_task: str
) -> None:
    _, dsn, books = day
    rows = table(spark, dsn, stage, records_per_task=records_per_task).orderBy("partition", "position").collect()
    found = [(row.partition, row.position, row.producer, row.serial, bytes(row.value)) for row in rows]
    assert found == [
        (partition, position, *record)
        for partition in (FIRST, SECOND)
        for position, record in enumerate(books.taken.get((stage, partition), []))
    ]
    assert {row.epoch for row in rows} == {256}


def test_segments_are_read_side_by_side(spark: SparkSession, day: Day) -> None:
    _, dsn, _ = day
    assert table(spark, dsn, "settle", records_per_task="1").rdd.getNumPartitions() == 11
    assert table(spark, dsn, "settle").rdd.getNumPartitions() == 2


def test_partitions_can_be_chosen_and_values_left_out(spark: SparkSession, day: Day) -> None:
    _, dsn, books = day
    frame = table(spark, dsn, "settle", partitions="1", values="false")
    assert frame.columns == ["position", "partition", "producer", "serial", "epoch", "segment"]
    assert frame.count() == len(books.taken[SETTLE, SECOND])
    assert frame.select("segment").distinct().count() == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partitions": "0,9"}, "no journal of partition 9"),
        ({"partitions": "x"}, "a list such as 0,3"),
        ({"values": "perhaps"}, "true or false"),
        ({"nonsense": "1"}, "no option nonsense"),
        ({"stage": ""}, "needs the option stage"),
    ],
)
def test_a_wrong_option_is_named(spark: SparkSession, day: Day, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException, match=message):
        table(spark, day[1], **{"stage": "settle", **options}).count()


def test_a_record_without_its_row_is_never_left_out_silently(spark: SparkSession, copy: Callable[[], str]) -> None:
    dsn = copy()
    with superuser(dsn) as connection:
        connection.execute("delete from zerotail.instruction where producer = 1 and partition = 0 and serial = 7")
    with pytest.raises(PySparkException, match="serial 7"):
        table(spark, dsn, "settle").count()
    assert table(spark, dsn, "settle", values="false").count() > 0
