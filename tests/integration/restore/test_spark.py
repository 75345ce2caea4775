"""Through Spark: a disordered topic as a DataFrame in journal order, two partitions at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from support.journal import superuser
from support.restoring import Disaster, disorder, make_disasters, write_log
from zerotail.errors import Refused
from zerotail.kafka.log import TopicSettings
from zerotail.lab.layout import Layout
from zerotail.spark.restoring import records_in_order, records_sorted
from zerotail.spark.session import session_for_a_look

pytestmark = [pytest.mark.servers, pytest.mark.soak]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session_for_a_look() as session:
        yield session


def disordered(lab: Layout, seed: int) -> list[Disaster]:
    disasters = make_disasters(lab, seed, TopicSettings(partitions=2, copies=1))
    for disaster in disasters:
        write_log(disaster.place, disorder(disaster.taken, seed))
    return disasters


def rows_of(frame: DataFrame, partition: int) -> list[tuple[int, int, int, bytes]]:
    return [
        (row.position, row.producer, row.serial, bytes(row.value))
        for row in frame.collect()
        if row.partition == partition
    ]


def test_the_frame_holds_every_record_in_journal_order(lab: Layout, spark: SparkSession) -> None:
    disasters = disordered(lab, 61)
    places = [disaster.place for disaster in disasters]
    for frame in (records_in_order(spark, places), records_sorted(spark, places, tasks=3)):
        for disaster in disasters:
            expected = [(position, *record) for position, record in enumerate(disaster.taken)]
            assert rows_of(frame, disaster.place.partition) == expected


def test_a_changed_chain_ends_the_job_with_its_segment(lab: Layout, spark: SparkSession) -> None:
    disasters = disordered(lab, 62)
    with superuser(disasters[0].place.dsn) as session:
        session.execute(b"update zerotail.segment set chain = sha256('x') where segment = 4 and partition = 1")
    places = [disaster.place for disaster in disasters]
    for frame in (records_in_order(spark, places), records_sorted(spark, places)):
        with pytest.raises(PySparkException, match="segment 4 of settle partition 1"):
            frame.collect()


def test_an_empty_partition_with_a_journal_is_refused_before_the_job(lab: Layout, spark: SparkSession) -> None:
    disasters = make_disasters(lab, 63, TopicSettings(partitions=2, copies=1))
    write_log(disasters[0].place, disasters[0].taken)
    with pytest.raises(Refused, match=r"partition 1 of topic \S+ is empty"):
        records_in_order(spark, [disaster.place for disaster in disasters])
