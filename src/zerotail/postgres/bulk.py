"""Many instructions in one statement, as a business brings them: with serials of its own, or to be numbered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import psycopg

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.postgres.connection import Connection, one_row

_LOADING = "select pg_try_advisory_lock(hashtextextended('zerotail.load', 0))"
_CANCEL_SECONDS = 2.0


class NumberedRow(NamedTuple):
    """An instruction with the serial that the business gave it."""

    producer: ProducerNumber
    partition: PartitionNumber
    serial: Serial
    id: str
    value: bytes


class UnnumberedRow(NamedTuple):
    """An instruction that zerotail will number."""

    producer: ProducerNumber
    partition: PartitionNumber
    id: str
    value: bytes


def copy_rows(connection: Connection, numbered: Sequence[NumberedRow], unnumbered: Sequence[UnnumberedRow]) -> None:
    """Store all of them, or none: one transaction."""
    with connection.transaction():
        if numbered:
            into = b"zerotail.instruction (producer, partition, serial, id, value)"
            _copy(connection, into, ["int4", "int4", "int8", "text", "bytea"], numbered)
        if unnumbered:
            into = b"zerotail.submission (producer, partition, id, value)"
            _copy(connection, into, ["int4", "int4", "text", "bytea"], unnumbered)


def _copy(connection: Connection, into: bytes, types: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(b"copy " + into + b" from stdin (format binary)") as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def is_alone_in_loading(connection: Connection) -> bool:
    """Whether no other session loads; from now on, and as long as this one lasts, others are told so."""
    (alone,) = one_row(connection, _LOADING)
    return bool(alone)


def cancel(connection: Connection) -> None:
    """Let the session give up what it waits for, a commit at the other site included; a server may not hear it."""
    with suppress(psycopg.Error):
        connection.cancel_safe(timeout=_CANCEL_SECONDS)
