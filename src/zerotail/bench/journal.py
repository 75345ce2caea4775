"""How many bytes of WAL the order journal takes per message, against a row per message.

Segments of records of two producers in random order are committed by the stage's own transaction, to a database with
nothing else in it: head, segment, commit record; no instructions, no state, no outbox. The log's insert position before
and after is all that is read. A checkpoint comes first, so that whole-page images fall into the measured part as they
would behind any checkpoint; the figure without them is the same again behind it.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace

from zerotail.bench.goals import reached_of
from zerotail.bench.journal_page import goals_of
from zerotail.bench.result import JournalCost
from zerotail.core.head import Head, advance
from zerotail.core.identity import Lsn, PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.deadline import Deadline
from zerotail.ports import Commit
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.journal import commit_batch, create_head, find_head
from zerotail.postgres.position import read_position
from zerotail.postgres.promotion import current_timeline

STAGE, PARTITION = StageName("bench"), PartitionNumber(0)
PRODUCERS = (ProducerNumber(1), ProducerNumber(2))
_ROWS = """
create table if not exists zerotail.bench_row (
    stage text, partition integer, position bigint, producer integer, serial bigint,
    primary key (stage, partition, position)
)
"""


def measure_journal(database: str, segments: int = 200, records: int = 1000) -> JournalCost:
    """Measure in a database that has the schema; its stage `bench` is ours."""
    messages = segments * records
    with connect(database, Deadline.after(30)) as connection:
        connection.execute(b"set synchronous_commit = local")
        create_head(connection, STAGE, PARTITION, PRODUCERS)
        _commit_segments(connection, segments, records, 0)
        connection.execute(b"checkpoint")
        began = time.perf_counter()
        first = _commit_segments(connection, segments, records, 1)
        seconds = time.perf_counter() - began
        second = _commit_segments(connection, segments, records, 2)
        (order_bytes,) = one_row(
            connection, "select avg(length(record_order))::float from zerotail.segment where stage = %s", (STAGE,)
        )
        connection.execute(_ROWS.encode())
        began = time.perf_counter()
        rows = _insert_rows(connection, segments, records)
        row_seconds = time.perf_counter() - began
        connection.execute(b"drop table zerotail.bench_row")
    found = JournalCost(
        messages,
        records,
        round(first / messages, 4),
        round(second / messages, 4),
        round(rows / messages, 2),
        seconds / messages,
        row_seconds / messages,
        order_bytes,
        {},
    )
    return replace(found, reached=reached_of(goals_of(found)))


def _commit_segments(connection: Connection, segments: int, records: int, seed: int) -> Lsn:
    """Commit so many segments; answers the bytes of WAL that they took."""
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
    head = find_head(connection, STAGE, PARTITION)
    if head is None:
        raise LookupError("the head was just made")
    timeline = current_timeline(connection)
    before = read_position(connection)
    for _ in range(segments):
        moved, effect = _next_segment(head, timeline, records, chance)
        with connection.transaction():
            commit_batch(connection, effect)
        head = moved
    return Lsn(read_position(connection) - before)


def _next_segment(head: Head, timeline: int, records: int, chance: random.Random) -> tuple[Head, Commit]:
    vector = dict(head.vector)
    owners = chance.choices(PRODUCERS, k=records)
    serials = []
    for owner in owners:
        vector[owner] = Serial(vector[owner] + 1)
        serials.append(vector[owner])
    moved, segment = advance(
        head,
        producers=owners,
        serials=serials,
        digests=[bytes(8)] * records,
        decided_at=head.decided_at + 1_000_000,
        version="1",
        owed={},
        hint=None,
    )
    return moved, Commit(STAGE, PARTITION, head.token, timeline, moved, segment, {}, {})  # type: ignore[arg-type]


def _insert_rows(connection: Connection, segments: int, records: int) -> Lsn:
    before = read_position(connection)
    for segment in range(segments):
        connection.execute(
            b"insert into zerotail.bench_row "
            b"select %s, 0, n, 1 + n %% 2, n / 2 from generate_series(%s::bigint, %s) as n",
            (STAGE, segment * records, (segment + 1) * records - 1),
        )
    return Lsn(read_position(connection) - before)
