"""Through Spark: a disordered topic as a DataFrame in journal order, two partitions at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from support.command import call
from support.journal import superuser
from support.restoring import EPOCH, Disaster, configured, disorder, make_disaster, make_disasters, write_log
from zerotail.core.record import Header, digest_of, encode
from zerotail.errors import Broken, Refused
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.kafka.plain_writer import write_plainly
from zerotail.lab.layout import Layout
from zerotail.restore.place import read_recorded
from zerotail.spark.restoring import records_in_order, records_sorted
from zerotail.spark.task_errors import errors_of_tasks

pytestmark = pytest.mark.nightly


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


def test_a_sort_has_as_many_tasks_as_spark_has_cores_or_as_many_as_it_is_told(
    lab: Layout, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    disasters = make_disasters(lab, 67, TopicSettings(partitions=1, copies=1), segments=300, most=4)
    write_log(disasters[0].place, disorder(disasters[0].taken, 67))
    places = [disasters[0].place]
    monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", 3)
    for tasks, frame in ((3, records_sorted(spark, places)), (2, records_sorted(spark, places, tasks=2))):
        assert frame.withColumn("task", spark_partition_id()).select("task").distinct().count() == tasks


def test_an_empty_partition_with_a_journal_is_refused_before_the_job(lab: Layout, spark: SparkSession) -> None:
    disasters = make_disasters(lab, 63, TopicSettings(partitions=2, copies=1))
    write_log(disasters[0].place, disasters[0].taken)
    with pytest.raises(Refused, match=r"partition 1 of topic \S+ is empty"):
        records_in_order(spark, [disaster.place for disaster in disasters])


def test_a_range_that_the_topic_has_nothing_of_is_missed(lab: Layout, spark: SparkSession) -> None:
    (disaster,) = make_disasters(lab, 64, TopicSettings(partitions=1, copies=1), segments=150, most=4)
    journal = read_recorded(disaster.place).journal
    first, end = journal.segments[64].first_position, journal.segments[128].first_position
    write_log(disaster.place, [*disaster.taken[:first], *disaster.taken[end:]])
    producer, serial, _ = disaster.taken[first]
    with (
        pytest.raises(Refused, match=rf"producer {producer}, serial {serial}\), at position {first} of"),
        errors_of_tasks(),
    ):
        records_sorted(spark, [disaster.place], tasks=3).collect()


def test_a_value_that_is_not_what_its_header_says_is_named_where_values_are_checked(
    lab: Layout, spark: SparkSession
) -> None:
    (disaster,) = make_disasters(lab, 65, TopicSettings(partitions=1, copies=1))
    place = disaster.place
    ensure_topic(admin_client(place.cluster), place.topic, place.shape)
    records = [
        (
            b"another" if (producer, serial) == (1, 33) else value,
            encode(Header(EPOCH, producer, serial, digest_of(value))),
        )
        for producer, serial, value in disaster.taken
    ]
    write_plainly(place.cluster, place.topic, place.partition, records)
    for make in (records_in_order, records_sorted):
        assert make(spark, [place]).count() == len(disaster.taken)
        with pytest.raises(Broken, match=r"producer 1, serial 33\) at position") as stopped, errors_of_tasks():
            make(spark, [place], check_values=True).collect()
        assert stopped.value.code == "ZT642"


def test_the_command_restores_through_spark_by_every_strategy_and_says_what_is_broken(
    lab: Layout, tmp_path: Path
) -> None:
    disaster = make_disaster(lab, 66)
    write_log(disaster.place, disorder(disaster.taken, 66)[:-9])
    config, topic = configured(disaster, tmp_path), str(disaster.place.topic)
    words = ("restore", "run", "--topic", topic, "--config", config, "--engine", "spark", "--json")
    chains = set()
    for strategy in (("unbounded",), ("sort",), ("bounded", "--cache", "9"), ("ordered-refill", "--into", "other")):
        said = call(*words, "--strategy", *strategy)
        assert said.code == 0, said.err
        (report,) = said.answer("restore-report")["partitions"]
        assert report["records"] == len(disaster.taken)
        chains.add(report["chain"])
    assert len(chains) == 1
    assert [value for _, _, value in disaster.content("other")] == [value for _, _, value in disaster.taken]
    with superuser(disaster.place.dsn) as session:
        session.execute(b"update zerotail.segment set chain = sha256('x') where segment = 4")
    stopped = call(*words, "--strategy", "sort")
    error = stopped.answer("error")
    assert (stopped.code, error["code"]) == (70, "ZT641")
    assert "segment 4 of settle partition 0" in error["message"]
