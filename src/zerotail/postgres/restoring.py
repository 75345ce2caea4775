"""What a restore reads of the database: the whole journal of a partition, and its records' values by the block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.core.restoration.journal import Journal, join_segments
from zerotail.deadline import Deadline
from zerotail.errors import Broken, Refused
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.feed_arrow import read_bare_rows
from zerotail.postgres.journal import find_head
from zerotail.postgres.reading import Source, read_range
from zerotail.postgres.segment import all_rows

ROWS_PER_BLOCK = 20_000
_CONNECT_SECONDS = 30.0
_NAME = "value"


def read_whole_journal(connection: Connection, stage: StageName, partition: PartitionNumber) -> Journal:
    """All segments up to the head, in the snapshot of the current transaction; `Broken` when they do not fit."""
    head = find_head(connection, stage, partition)
    if head is None:
        raise Refused(
            f"the database has no journal of stage {stage}, partition {partition}.",
            code="ZT481",
            tries=["zerotail journal tail"],
        )
    return join_segments(stage, partition, all_rows(connection, stage, partition, until=head.segment), head)


def read_blocks(
    dsn: str,
    source: Source,
    producer: ProducerNumber,
    partition: PartitionNumber,
    first: Serial,
    last: Serial,
    rows: int = ROWS_PER_BLOCK,
) -> Iterator[pa.RecordBatch]:
    """The values of one producer's records from serial `first` to `last`, in order; `Broken` where a row is missing."""
    for begin in range(first, last + 1, rows):
        end = min(begin + rows, last + 1)
        if source.lane is None:
            block = _instructions(dsn, producer, partition, begin, end)
        else:
            with session(dsn, Deadline.after(_CONNECT_SECONDS)) as connection:
                ends = (Serial(begin), Serial(end - 1))
                stored = read_range(connection, source.lane, producer, partition, *ends)
            _require_dense(np.array(sorted(stored), dtype=np.int64), producer, begin, end)
            block = pa.array([stored[Serial(serial)] for serial in range(begin, end)], pa.binary())
        if source.transform is not None:
            block = pa.array(map(source.value_of, range(begin, end), block.to_pylist()), pa.binary())
        yield pa.record_batch({_NAME: block})


def _instructions(dsn: str, producer: ProducerNumber, partition: PartitionNumber, begin: int, end: int) -> pa.Array:
    batches = [*read_bare_rows(dsn, producer, partition, begin, end)]
    serials = [batch.column("serial").to_numpy() for batch in batches]
    _require_dense(np.concatenate([np.zeros(0, dtype=np.int64), *serials]), producer, begin, end)
    return pa.concat_arrays([batch.column("value") for batch in batches])


def _require_dense(serials: np.ndarray, producer: ProducerNumber, begin: int, end: int) -> None:
    expected = np.arange(begin, end)
    if np.array_equal(serials, expected):
        return
    missing = int(np.setdiff1d(expected, serials)[0])
    raise Broken(
        f"the journal names the record (producer {producer}, serial {missing}), and it has no row",
        code="ZT644",
        why="A record without its row cannot be written again.",
        tries=["zerotail journal verify", "zerotail journal compare"],
    )
