"""Instruction rows as Arrow batches, straight from the server's binary format.

ADBC hands a connection string to a libpq of its own: what logs in elsewhere logs in here, with the same password file,
certificates and TLS mode. Its plain interface is used: the one by Python's rules for databases imports pandas as well,
a third of a second of processor time in every process that only looks how far the rows have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import adbc_driver_postgresql
import numpy as np
import pyarrow as pa
from adbc_driver_manager import AdbcConnection, AdbcStatement
from adbc_driver_manager import Error as AdbcError
from psycopg import conninfo

from zerotail.errors import Unavailable
from zerotail.postgres.connection import parameters, where

# The epoch is read in the snapshot of the rows: if they do not survive it, its cut says so.
_FROM = (
    "from zerotail.instruction where producer = $1 and partition = $2 and serial >= $3 and serial < $4 order by serial"
)
_ROWS = f"select serial, (select max(epoch) from zerotail.epoch) as epoch, value {_FROM}"
_BARE_ROWS = f"select serial, value {_FROM}"
_RANGE = pa.schema([("producer", pa.int32()), ("partition", pa.int32()), ("first", pa.int64()), ("next", pa.int64())])
_SCHEMA = pa.schema(
    [
        ("producer", pa.int32()),
        ("partition", pa.int32()),
        ("serial", pa.int64()),
        ("epoch", pa.int64()),
        ("value", pa.binary()),
    ]
)


def read_rows(dsn: str, producer: int, partition: int, first: int, next_serial: int) -> Iterator[pa.RecordBatch]:
    """The rows of a range of serials, in order."""
    for batch in _read(dsn, _ROWS, producer, partition, first, next_serial):
        # What is the same in every row is not asked for: each column costs a tenth of a microsecond per row.
        same = [np.full(batch.num_rows, number, dtype=np.int32) for number in (producer, partition)]
        yield pa.record_batch([*map(pa.array, same), *batch.columns], names=_SCHEMA.names).cast(_SCHEMA)


def read_bare_rows(dsn: str, producer: int, partition: int, first: int, next_serial: int) -> Iterator[pa.RecordBatch]:
    """The same rows, but only their serials and values."""
    return _read(dsn, _BARE_ROWS, producer, partition, first, next_serial)


def _read(dsn: str, query: str, *wanted: int) -> Iterator[pa.RecordBatch]:
    asked = pa.RecordBatch.from_pylist([dict(zip(_RANGE.names, wanted, strict=True))], _RANGE)
    statement, rows = _ask(dsn, query, asked)
    with statement, rows:
        yield from rows


def open_connection(dsn: str) -> None:
    """Connect this worker now, and not when the first rows are wanted."""
    _connection(dsn)


def _ask(dsn: str, query: str, asked: pa.RecordBatch) -> tuple[AdbcStatement, pa.RecordBatchReader]:
    """The question and its answer; a connection that has died since the last question is made anew."""
    try:
        return _execute(_connection(dsn), query, asked)
    except AdbcError:
        _connection.cache_clear()
    try:
        return _execute(_connection(dsn), query, asked)
    except AdbcError as error:
        raise _silent(dsn, error) from error


def _execute(
    connection: AdbcConnection, query: str, asked: pa.RecordBatch
) -> tuple[AdbcStatement, pa.RecordBatchReader]:
    statement = AdbcStatement(connection)
    statement.set_sql_query(query)
    statement.prepare()
    statement.bind(asked)
    stream, _ = statement.execute_query()
    return statement, pa.RecordBatchReader.from_stream(stream)


@cache
def _connection(dsn: str) -> AdbcConnection:
    """One connection per worker and database: making one costs more than a batch."""
    try:
        return AdbcConnection(adbc_driver_postgresql.connect(_uri(dsn)))
    except AdbcError as error:
        raise _silent(dsn, error) from error


def _silent(dsn: str, error: AdbcError) -> Unavailable:
    said = (str(error).strip().splitlines() or ["no reason given"])[0]
    return Unavailable(f"the database at {where(dsn)} does not answer: {said}", code="ZT301")


def _uri(dsn: str) -> str:
    return conninfo.make_conninfo(dsn, application_name="zerotail producer", **parameters(dsn))
