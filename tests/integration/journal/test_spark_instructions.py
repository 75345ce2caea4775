"""Instructions as a stream in a Spark job of somebody's own, by the options that the documents show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.journal import CARDS, FIRST, WIRES, Books
from zerotail.core.identity import ProducerNumber
from zerotail.deadline import Deadline, wait_until
from zerotail.postgres.connection import connect, one_row
from zerotail.spark.instruction_source import InstructionSource

pytestmark = pytest.mark.servers

Row = tuple[int, int, int, bytes]
"""Producer, partition, serial and value."""
_NEW = 5
_LAST = "select max(serial) from zerotail.instruction where producer = %s and partition = 0"
_GIVEN = """
insert into zerotail.instruction (producer, partition, serial, id, value)
select 2, 0, %s + n, 'new ' || n, convert_to('wire ' || n, 'utf8') from generate_series(1, %s) as n
"""
_WITHOUT_SERIAL = """
insert into zerotail.submission (producer, partition, id, value, submitted_at)
select 1, 0, 'new ' || n, convert_to('card ' || n, 'utf8'), now() + n * interval '1 ms'
  from generate_series(1, %s) as n
"""
_WAITING = "select count(*) from zerotail.submission"


@contextmanager
def streamed(spark: SparkSession, folder: Path, **options: str) -> Iterator[list[Row]]:
    """What has come out of the stream so far, batch by batch."""
    found: list[Row] = []

    def take(batch: DataFrame, _number: int) -> None:
        rows = [(row.producer, row.partition, row.serial, bytes(row.value)) for row in batch.collect()]
        found.extend(sorted(rows))

    spark.dataSource.register(InstructionSource)
    rows = spark.readStream.format("zerotail-instructions").options(**options).load()
    query = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        yield found
    finally:
        query.stop()


@pytest.fixture
def database(copy: Callable[[], str]) -> str:
    """A day's journal, and behind it rows of both kinds that no stage has taken."""
    dsn = copy()
    with connect(dsn, Deadline.after(30)) as session:
        session.execute(_GIVEN.encode(), (one_row(session, _LAST, (WIRES,))[0], _NEW))
        session.execute(_WITHOUT_SERIAL.encode(), (_NEW,))
    return dsn


def behind(day: tuple[str, str, Books], producer: ProducerNumber, name: str) -> list[Row]:
    """The new rows, with the serials that follow those of the day."""
    taken = max(serial for owner, serial, _ in day[2].taken["settle", FIRST] if owner == producer)  # type: ignore[index]
    return [(producer, 0, taken + n, f"{name} {n}".encode()) for n in range(1, _NEW + 1)]


def waiting(dsn: str) -> int:
    with connect(dsn, Deadline.after(30)) as session:
        return int(one_row(session, _WAITING)[0])


def test_what_no_stage_has_taken_comes_once_in_the_order_of_its_serials(
    spark: SparkSession, day: tuple[str, str, Books], database: str, tmp_path: Path
) -> None:
    expected = behind(day, CARDS, "card") + behind(day, WIRES, "wire")
    with streamed(spark, tmp_path, dsn=database, producers="cards,wires", numbered="cards") as found:
        wait_until("all rows are there", lambda: len(found) >= len(expected), Deadline.after(60))
        assert sorted(found) == expected
    assert waiting(database) == 0


def test_rows_without_a_serial_wait_for_a_stream_that_numbers_them(
    spark: SparkSession, day: tuple[str, str, Books], database: str, tmp_path: Path
) -> None:
    with streamed(spark, tmp_path, dsn=database, producers="cards,wires") as found:
        wait_until("the others are there", lambda: len(found) >= _NEW, Deadline.after(60))
        assert found == behind(day, WIRES, "wire")
    assert waiting(database) == _NEW


def test_what_the_stage_does_not_take_comes_again(
    spark: SparkSession, day: tuple[str, str, Books], database: str, tmp_path: Path
) -> None:
    wires = behind(day, WIRES, "wire")
    with streamed(spark, tmp_path, dsn=database, producers="wires", resend_after_seconds="0.5") as found:
        wait_until("they came twice", lambda: len(found) >= 2 * _NEW, Deadline.after(60))
        assert found[: 2 * _NEW] == wires * 2
