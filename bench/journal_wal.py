"""How many bytes of WAL the order journal takes per message.

    python bench/journal_wal.py [--segments 200] [--records 1000] [--json]

Segments of 1,000 records of two producers in random order are committed by the stage's own transaction, to a database
with nothing else in it: head, segment, commit record; no instructions, no state, no outbox. The log's insert position
before and after is all that is read. A checkpoint comes first, so that whole-page images fall into the measured part as
they would behind any checkpoint; `without_page_images` is the same again behind it.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path

from zerotail.core.head import advance
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import bring_up, take_down
from zerotail.ports import Commit
from zerotail.postgres.connection import Connection, connect
from zerotail.postgres.journal import commit_batch, create_head, find_head
from zerotail.postgres.position import read_position
from zerotail.postgres.promotion import current_timeline

STAGE, PARTITION = StageName("settle"), PartitionNumber(0)
PRODUCERS = (ProducerNumber(1), ProducerNumber(2))


def commit_segments(connection: Connection, segments: int, records: int, seed: int) -> int:
    """Commit so many segments; answers the bytes of WAL that they took."""
    chance = random.Random(seed)
    head = find_head(connection, STAGE, PARTITION)
    assert head is not None
    timeline = current_timeline(connection)
    before = read_position(connection)
    for _ in range(segments):
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
            owed=(),
            hint=None,
        )
        with connection.transaction():
            commit_batch(connection, Commit(STAGE, PARTITION, head.token, timeline, moved, segment, {}, {}))
        head = moved
    return read_position(connection) - before


def measure(database: str, segments: int, records: int) -> dict[str, float]:
    """Bytes per message, behind a checkpoint and once the pages are in the log."""
    with connect(database, Deadline.after(30)) as connection:
        connection.execute("set synchronous_commit = local")
        create_head(connection, STAGE, PARTITION, PRODUCERS)
        commit_segments(connection, segments, records, 0)
        connection.execute("checkpoint")
        first = commit_segments(connection, segments, records, 1)
        second = commit_segments(connection, segments, records, 2)
        stored = connection.execute(
            "select avg(pg_column_size(segment.*)), avg(length(record_order)) from zerotail.segment"
        ).fetchone()
    assert stored is not None
    messages = segments * records
    return {
        "messages": messages,
        "bytes_per_message": first / messages,
        "bytes_per_message_without_page_images": second / messages,
        "row_bytes_per_segment": float(stored[0]),
        "order_bytes_per_segment": float(stored[1]),
    }


def main() -> None:
    """Bring up a lab, measure, take it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=200)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--dsn", help="a database with the schema and nothing else; else a lab is brought up")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.dsn:
        found = measure(options.dsn, options.segments, options.records)
    else:
        with tempfile.TemporaryDirectory(prefix="zerotail-bench-") as scratch:
            folder = Path(scratch) / "lab"
            try:
                layout = bring_up(LabSettings(folder))
                found = measure(dsn(layout.database("east")), options.segments, options.records)
            finally:
                take_down(folder)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:<40} {value:10.3f}")


if __name__ == "__main__":
    main()
