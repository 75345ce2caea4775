"""What a site does in its first second as the active one does not read the history, however little the planner knows.

A queue through which much has passed looks full to it, until somebody has counted again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.journal import day_of
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.feed import number_submissions
from zerotail.postgres.lineage import observe_cut

pytestmark = pytest.mark.servers

PRODUCER, PARTITION = ProducerNumber(900), PartitionNumber(0)
PASSED = 30_000
SCANS = "select seq_scan from pg_stat_user_tables where relid = %s::regclass"
QUEUE = "insert into zerotail.submission (producer, partition, id, value) "


@pytest.fixture(scope="module")
def busy(warm_lab: Layout) -> Iterator[Connection]:
    """A database through whose queue of submissions many instructions have passed."""
    connection = connect(day_of(warm_lab)[1], Deadline.after(30))
    for table in ("instruction", "submission"):
        connection.execute(f"alter table zerotail.{table} set (autovacuum_enabled = off)".encode())
    connection.execute("insert into zerotail.producer values (900, 'many', 'many', 'nobody')")
    queued = "select 900, 0, 'id-' || number, repeat('x', 200)::bytea from generate_series(1, %s) as number"
    connection.execute(f"{QUEUE} {queued}".encode(), (PASSED,))
    connection.execute("analyze zerotail.submission")  # when it was full
    while number_submissions(connection, PRODUCER, PARTITION, PASSED):
        pass
    connection.execute("analyze zerotail.instruction")
    yield connection
    connection.close()


def whole_reads(connection: Connection, table: str = "instruction") -> int:
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    (count,) = one_row(connection, SCANS, (f"zerotail.{table}",))
    return int(count)


def test_a_submission_is_numbered_without_reading_all_instructions(busy: Connection) -> None:
    before = whole_reads(busy)
    busy.execute(f"{QUEUE} values (900, 0, 'id-1', ''), (900, 0, 'new', '')".encode())
    assert number_submissions(busy, PRODUCER, PARTITION, PASSED) == 1, "the one that is known already goes"
    assert whole_reads(busy) == before


def test_a_long_queue_is_numbered_piece_by_piece_without_reading_all_of_it(busy: Connection) -> None:
    queued = "select 900, 0, 'late-' || number, repeat('x', 200)::bytea from generate_series(1, %s) as number"
    busy.execute(f"{QUEUE} {queued}".encode(), (PASSED,))
    before = whole_reads(busy, "submission")
    for _ in range(3):
        with busy.transaction():
            assert number_submissions(busy, PRODUCER, PARTITION, PASSED // 4) == PASSED // 4
    assert whole_reads(busy, "submission") == before
    (waiting,) = one_row(busy, "select count(*) from zerotail.submission")
    assert waiting == PASSED // 4


def test_a_cut_is_taken_without_reading_all_instructions(busy: Connection) -> None:
    before = whole_reads(busy)
    assert observe_cut(busy).serials[PRODUCER, PARTITION] >= Serial(PASSED)
    assert whole_reads(busy) == before
