"""Reconciliation: everything applied once, the journal unbroken, both sites equal; and each planted fault reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.journal import Books, superuser
from zerotail.core.reconciliation import Difference, Reconciliation
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn as dsn_of
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session, snapshot
from zerotail.postgres.verification import find_places, verify_partition
from zerotail.spark.reconcile import find_diverged, find_unconserved, find_unequal_rows, reconcile
from zerotail.spark.stored import APPLIED, ROWS

pytestmark = pytest.mark.servers
Day = tuple[str, str, Books]


def spoil(dsn: str, statement: str) -> str:
    with superuser(dsn) as connection:
        connection.execute(statement.encode())
    return dsn


def only(found: Reconciliation, kind: str) -> Difference:
    (one,) = (difference for difference in found.differences if difference.kind == kind)
    return one


@pytest.mark.parametrize("records_per_task", [100, 1_000_000])
def test_a_right_day_is_reconciled_with_its_standby(
    spark: SparkSession, lab: Layout, day: Day, records_per_task: int
) -> None:
    name, dsn, books = day
    standby = dsn_of(lab.database("west")).replace("dbname=postgres", f"dbname={name}")
    found = reconcile(spark, dsn, standby, records_per_task=records_per_task)
    assert found.ok, found
    taken = sum(map(len, books.taken.values()))
    assert (found.rows, found.applied, found.waiting, found.segments) == (taken, taken, 0, 13)
    assert found.compared


def test_rows_that_nobody_has_taken_yet_are_waiting(spark: SparkSession, copy: Callable[[], str]) -> None:
    dsn = copy()
    insert = "insert into zerotail.instruction select 1, 0, 112 + n, 'late-' || n, 'x' from generate_series(1, 5) n"
    found = reconcile(spark, spoil(dsn, insert))
    assert found.ok, found
    assert found.waiting == 5


def test_a_lost_row_is_reported(spark: SparkSession, copy: Callable[[], str]) -> None:
    dsn = spoil(copy(), "delete from zerotail.instruction where producer = 1 and partition = 0 and serial = 33")
    found = reconcile(spark, dsn)
    assert found.counts == {"lost": 1, "broken": 1}
    lost = only(found, "lost")
    assert (lost.stage, lost.partition, lost.segment, lost.producer, lost.serial) == ("settle", 0, 2, 1, 33)
    assert only(found, "broken").segment == 2


def test_a_row_that_no_segment_took_is_reported_as_missing(spark: SparkSession, copy: Callable[[], str]) -> None:
    # The second segment, five records of producer 1, says that it took the first three.
    statement = "update zerotail.segment set counts = '{3}' where stage = 'settle' and partition = 0 and segment = 2"
    found = reconcile(spark, spoil(copy(), statement))
    assert found.counts == {"missing": 2, "broken": 1}
    assert [one.serial for one in found.differences if one.kind == "missing"] == [34, 35]


def test_a_row_that_was_taken_twice_is_reported_as_doubled(spark: SparkSession, copy: Callable[[], str]) -> None:
    statement = (
        "update zerotail.segment set first_serials = '{30}' where stage = 'settle' and partition = 0 and segment = 2"
    )
    found = reconcile(spark, spoil(copy(), statement))
    assert found.counts == {"doubled": 1, "missing": 1, "broken": 1}
    doubled = only(found, "doubled")
    assert (doubled.producer, doubled.serial, doubled.what) == (1, 30, "it was taken 2 times")


def test_a_changed_value_is_found_by_the_chain_and_named_by_the_other_site(
    spark: SparkSession, day: Day, copy: Callable[[], str]
) -> None:
    statement = (
        "update zerotail.instruction set value = set_byte(value, 0, 65) "
        "where producer = 1 and partition = 0 and serial = 40"
    )
    dsn = spoil(copy(), statement)
    alone = reconcile(spark, dsn)
    assert alone.counts == {"broken": 1}
    assert alone.differences[0].segment == 3
    both = reconcile(spark, dsn, day[1])
    assert both.counts == {"broken": 1, "changed": 1}
    changed = only(both, "changed")
    assert (changed.partition, changed.producer, changed.serial) == (0, 1, 40)


def test_the_other_site_lacking_a_row_or_a_segment_is_reported(
    spark: SparkSession, day: Day, copy: Callable[[], str]
) -> None:
    statement = (
        "delete from zerotail.instruction where producer = 2 and partition = 1 and serial = 3; "
        "delete from zerotail.segment where stage = 'post' and segment = 1"
    )
    found = reconcile(spark, day[1], spoil(copy(), statement))
    assert found.counts == {"absent": 1, "diverged": 1}
    assert only(found, "absent").what == only(found, "diverged").what == "only this site has it"


@pytest.mark.parametrize(
    "statements",
    [
        (
            "update zerotail.segment set record_order = set_byte(record_order, 3, 255) "
            "where stage = 'settle' and partition = 0 and segment = 4",
            "update zerotail.segment set output_chain = chain where stage = 'settle' and partition = 1 and segment = 3",
            "delete from zerotail.head where stage = 'post'",
        ),
        (
            "delete from zerotail.segment where stage = 'settle' and partition = 0 and segment = 3",
            "delete from zerotail.segment where stage = 'settle' and partition = 1",
            "update zerotail.head set vector = '{}' where stage = 'post'",
        ),
    ],
    ids=["changed", "removed"],
)
def test_spark_and_the_plain_walk_name_the_same_faults(
    spark: SparkSession, copy: Callable[[], str], statements: tuple[str, ...]
) -> None:
    dsn = spoil(copy(), "; ".join(statements))
    expected = []
    with session(dsn, Deadline.after(30)) as connection, snapshot(connection):
        for stage, partition in find_places(connection):
            fault = verify_partition(connection, stage, partition).fault
            assert fault is not None
            expected.append((stage, partition, fault.segment, fault.position, f"{fault.rule}: {fault.what}"))
    found = reconcile(spark, dsn, records_per_task=100)
    assert found.counts["broken"] == 3
    broken = [one for one in found.differences if one.kind == "broken"]
    assert sorted((one.stage, one.partition, one.segment, one.position, one.what) for one in broken) == expected


# The questions by themselves, on tables that no journal would write.


def kinds(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((row.kind, row.producer, row.serial) for row in frame.collect())


def test_conservation_tells_missing_doubled_and_lost_apart(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 0, serial, b"d") for serial in (1, 2, 3, 5, 6)], ROWS)
    taken = [(0, 1), (1, 2), (2, 2), (3, 4), (4, 5)]
    applied = spark.createDataFrame([(position, 0, 1, serial, 256, 1, "s") for position, serial in taken], APPLIED)
    vectors = spark.createDataFrame([(1, 0, 5)], "producer int, partition int, vector long")
    found = find_unconserved(rows, applied, vectors)
    assert kinds(found) == [("doubled", 1, 2), ("lost", 1, 4), ("missing", 1, 3)]


def test_a_record_of_a_producer_that_nobody_knows_is_lost(spark: SparkSession) -> None:
    applied = spark.createDataFrame([(0, 0, 9, 1, 256, 1, "s")], APPLIED)
    vectors = spark.createDataFrame([], "producer int, partition int, vector long")
    assert kinds(find_unconserved(spark.createDataFrame([], ROWS), applied, vectors)) == [("lost", 9, 1)]


def test_equality_looks_no_further_than_both_sites_reach(spark: SparkSession) -> None:
    here = spark.createDataFrame([(1, 0, 1, b"a"), (1, 0, 2, b"b"), (1, 0, 4, b"d"), (1, 0, 5, b"e")], ROWS)
    there = spark.createDataFrame([(1, 0, 1, b"a"), (1, 0, 2, b"X"), (1, 0, 3, b"c"), (1, 0, 4, b"d")], ROWS)
    assert kinds(find_unequal_rows(here, there)) == [("absent", 1, 3), ("changed", 1, 2)]


def test_segments_diverge_by_either_chain(spark: SparkSession) -> None:
    form = "stage string, partition int, segment long, first_position long, chain binary, output_chain binary"
    here = [("s", 0, number, number, b"in%d" % number, b"out") for number in range(1, 7)]
    there = [*here[:2], (*here[2][:5], b"other"), (*here[3][:4], b"other", b"out"), here[5]]
    reach = spark.createDataFrame([("s", 0, 5)], "stage string, partition int, reach long")
    found = find_diverged(spark.createDataFrame(here, form), spark.createDataFrame(there, form), reach)
    assert sorted((row.segment, row.what) for row in found.collect()) == [
        (3, "the chains differ"),
        (4, "the chains differ"),
        (5, "only this site has it"),
    ]
