"""What a site does in its first second as the active one does not read the history, however little the planner knows.

A queue through which much has passed looks full to it, until somebody has counted again.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from support.journal import BANK, day_of
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.feed import number_submissions
from zerotail.postgres.journal import create_head
from zerotail.postgres.lineage import observe_cut
from zerotail.postgres.reading import MadeBy, read_versions
from zerotail.postgres.transaction import Declined

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
    create_head(connection, StageName("nobody"), PARTITION, ())
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


def reads_of(connection: Connection, table: str) -> tuple[int, ...]:
    """How often a table was read, in whole or by an index."""
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    query = "select seq_scan, idx_scan from pg_stat_user_tables where relid = %s::regclass"
    return one_row(connection, query, (f"zerotail.{table}",))


def entries_read(connection: Connection, index: str) -> int:
    """How many entries of an index were read."""
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    (count,) = one_row(connection, "select idx_tup_read from pg_stat_user_indexes where indexrelname = %s", (index,))
    return int(count)


def test_a_submission_is_numbered_without_reading_all_instructions(busy: Connection) -> None:
    before = whole_reads(busy)
    busy.execute(f"{QUEUE} values (900, 0, 'id-1', repeat('x', 200)::bytea), (900, 0, 'new', '')".encode())
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


def test_a_cut_is_taken_without_reading_all_instructions_or_messages(busy: Connection) -> None:
    # Another stage takes what the day has sent to its bank: of its lanes the cut has the last numbers.
    busy.execute("insert into zerotail.producer values (901, 'hop', 'hop', 'nobody', %s, 0)", (BANK,))
    sent = "select max(first_number + count - 1) from zerotail.outbox where channel = %s and partition = 0"
    (last,) = one_row(busy, sent, (BANK,))
    before, messages = whole_reads(busy), reads_of(busy, "outbox")
    cut = observe_cut(busy).serials
    assert cut[PRODUCER, PARTITION] >= Serial(PASSED)
    assert cut[ProducerNumber(901), PARTITION] == last > 0
    assert whole_reads(busy) == before
    assert reads_of(busy, "outbox") == messages


def test_a_cut_ends_below_the_first_hole(busy: Connection) -> None:
    # Whoever gives its own serials may commit the later one first.
    busy.execute("insert into zerotail.producer values (902, 'given', 'given', 'nobody')")
    given = "insert into zerotail.instruction (producer, partition, serial, id, value) values (902, 0, %s, %s, '')"
    reached = []
    for serial in (1, 2, 4, 5, 3, 7):
        busy.execute(given, (serial, f"given {serial}"))
        reached.append(observe_cut(busy).serials[ProducerNumber(902), PARTITION])
    assert reached == [1, 2, 2, 2, 5, 5]
    # What was taken is dense; only what waits behind it is read.
    with busy.transaction(force_rollback=True):
        busy.execute("""update zerotail.head set vector = '{"902": 7}' where stage = 'nobody'""")
        assert observe_cut(busy).serials[ProducerNumber(902), PARTITION] == 7
        busy.execute(given, (9, "given 9"))
        assert observe_cut(busy).serials[ProducerNumber(902), PARTITION] == 7


def test_which_code_made_the_segments_is_found_without_reading_all_of_them(busy: Connection) -> None:
    with busy.transaction():
        busy.execute("set local session_replication_role = replica")
        busy.execute(
            "insert into zerotail.segment select 'long', number % 4, number / 4, 256, number, '{}', '{}', '{}', '', 0, "
            "case when number < 8000 then 'b' when number < 12000 then 'a' else 'c' end, '', '' "
            "from generate_series(4, 20003) as number"
        )
    busy.execute("analyze zerotail.segment")
    before, whole = entries_read(busy, "segment_by_version"), whole_reads(busy, "segment")
    assert read_versions(busy, StageName("long")) == [MadeBy("b", 1), MadeBy("a", 2000), MadeBy("c", 3000)]
    assert entries_read(busy, "segment_by_version") - before < 20
    assert whole_reads(busy, "segment") == whole


def test_nothing_is_numbered_between_a_promotion_and_its_epoch(busy: Connection) -> None:
    busy.execute(f"{QUEUE} values (900, 0, 'between', '')".encode())
    with busy.transaction(force_rollback=True):
        busy.execute("update zerotail.epoch set timeline = timeline + 1")  # as if this one were another one
        with pytest.raises(Declined, match="another epoch is current"):
            number_submissions(busy, PRODUCER, PARTITION, PASSED)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="has no epoch of its own yet"):
            busy.execute("insert into zerotail.instruction values (900, 7, 1, 'plain', '')")
    assert number_submissions(busy, PRODUCER, PARTITION, PASSED) > 0
