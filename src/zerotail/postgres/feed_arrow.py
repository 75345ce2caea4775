"""Instruction rows as Arrow batches, straight from the server's binary format.

ADBC hands a connection string to a libpq of its own: what logs in elsewhere logs in here, with the same password file,
certificates and TLS mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from psycopg import conninfo

from zerotail.errors import Unavailable
from zerotail.postgres.connection import where

# The epoch is read in the snapshot of the rows: if they do not survive it, its cut says so.
_ROWS = (
    "select producer, partition, serial, (select max(epoch) from zerotail.epoch) as epoch, value "
    "from zerotail.instruction where producer = $1 and partition = $2 and serial >= $3 and serial < $4 order by serial"
)
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
    with _connection(dsn).cursor() as cursor:
        cursor.execute(_ROWS, (producer, partition, first, next_serial))
        for batch in cursor.fetch_record_batch():
            yield batch.cast(_SCHEMA)
    _connection(dsn).rollback()


def open_connection(dsn: str) -> None:
    """Connect this worker now, and not when the first rows are wanted."""
    _connection(dsn)


@cache
def _connection(dsn: str) -> adbc.Connection:
    """One connection per worker and database: making one costs more than a batch."""
    try:
        return adbc.connect(_uri(dsn))
    except adbc.Error as error:
        said = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise Unavailable(f"the database at {where(dsn)} does not answer: {said}", code="ZT301") from error


def _uri(dsn: str) -> str:
    return conninfo.make_conninfo(dsn, application_name="zerotail producer")
