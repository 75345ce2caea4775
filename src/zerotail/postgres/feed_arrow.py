"""Instruction rows as Arrow batches, straight from the server's binary format.

ADBC hands a connection string to a libpq of its own: what logs in elsewhere logs in here, with the same password file,
certificates and TLS mode. Its plain interface is used: the one by Python's rules for databases imports pandas as well,
a third of a second of processor time in every process that only looks how far the rows have come.

Its socket is nowhere to be asked for. It is the one that is there behind the connecting and was not before; so whoever
reads rows of a server that vanishes is freed as everybody else is (`vigil`).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import adbc_driver_postgresql
import numpy as np
import pyarrow as pa
from adbc_driver_manager import AdbcConnection, AdbcStatement
from adbc_driver_manager import Error as AdbcError
from psycopg import conninfo

from zerotail.errors import Unavailable
from zerotail.postgres.connection import address_of, parameters, where
from zerotail.postgres.vigil import cut_wire_when_gone

_Answer: TypeAlias = tuple[AdbcStatement, pa.RecordBatchReader]
_CONNECT_SECONDS = 4
_DESCRIPTORS = "/proc/self/fd"

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
    (statement, rows), known = _ask(dsn, query, asked)
    with statement, rows, known.watched():
        try:
            yield from rows
        except (OSError, pa.ArrowException) as error:  # what a reader makes of a connection that was lost
            _connection.cache_clear()
            raise _silent(dsn, error) from error


def open_connection(dsn: str) -> None:
    """Connect this worker now, and not when the first rows are wanted."""
    _connection(dsn)


@dataclass(frozen=True, slots=True)
class _Known:
    """A connection, and the socket that it speaks through, if that was found."""

    connection: AdbcConnection
    descriptor: int | None
    address: tuple[str, int]

    def watched(self) -> AbstractContextManager[None]:
        """Let whoever waits for an answer in the block be freed when the server is gone."""
        return cut_wire_when_gone(self.descriptor, self.address)


def _ask(dsn: str, query: str, asked: pa.RecordBatch) -> tuple[_Answer, _Known]:
    """The question and its answer; a connection that has died since the last question is made anew."""
    try:
        return _execute(known := _connection(dsn), query, asked), known
    except AdbcError:
        _connection.cache_clear()
    try:
        return _execute(known := _connection(dsn), query, asked), known
    except AdbcError as error:
        _connection.cache_clear()
        raise _silent(dsn, error) from error


def _execute(known: _Known, query: str, asked: pa.RecordBatch) -> _Answer:
    with known.watched():
        statement = AdbcStatement(known.connection)
        statement.set_sql_query(query)
        statement.prepare()
        statement.bind(asked)
        stream, _ = statement.execute_query()
        return statement, pa.RecordBatchReader.from_stream(stream)


@cache
def _connection(dsn: str) -> _Known:
    """One connection per worker and database: making one costs more than a batch."""
    before = _sockets()
    try:
        connection = AdbcConnection(adbc_driver_postgresql.connect(_uri(dsn)))
    except AdbcError as error:
        raise _silent(dsn, error) from error
    made = {descriptor: peer for descriptor, peer in _sockets().items() if before.get(descriptor) != peer}
    host, port = address_of(dsn)
    ours = {descriptor: peer for descriptor, peer in made.items() if host.startswith("/") or peer[1] == port}
    for descriptor, peer in ours.items():
        return _Known(connection, descriptor, (host if host.startswith("/") else peer[0], port))
    return _Known(connection, None, (host, port))


def _sockets() -> dict[int, tuple[str, int]]:
    """The connected sockets of this process by descriptor, each with its peer; none where nobody lists them."""
    found = {}
    with suppress(OSError):
        for name in os.listdir(_DESCRIPTORS):
            with suppress(OSError):
                if os.readlink(f"{_DESCRIPTORS}/{name}").startswith("socket:"):
                    with socket.socket(fileno=os.dup(int(name))) as one:
                        peer = one.getpeername()
                    found[int(name)] = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else (str(peer), 0)
    return found


def _silent(dsn: str, error: Exception) -> Unavailable:
    said = (str(error).strip().splitlines() or ["no reason given"])[0]
    return Unavailable(f"the database at {where(dsn)} does not answer: {said}", code="ZT301")


def _uri(dsn: str) -> str:
    patience = {} if "connect_timeout" in conninfo.conninfo_to_dict(dsn) else {"connect_timeout": _CONNECT_SECONDS}
    return conninfo.make_conninfo(dsn, application_name="zerotail producer", **parameters(dsn), **patience)
