"""From rows to records in Kafka: what a producer's task does, and the process of its own for rows that take too long.

A row that the transform or Kafka cannot take ends what is sent: the rows in front of it are, and it is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, TopicName
from zerotail.core.record import digest_of
from zerotail.errors import Unavailable
from zerotail.flow.records import Transform, make_records
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.producer import RecordSender
from zerotail.ports import Batch, Done, SendRecords, TooLarge
from zerotail.postgres.poison import Unfit, is_decided_at_the_door, record_at_the_door
from zerotail.postgres.transaction import Session
from zerotail.spark.patience import SlowError, interrupting

DEAF_SECONDS = 0.5
"""So much longer has a transform that hears nothing: all producers wait for it."""
_DATABASE_SECONDS = 5.0
_HOLLOW = b""
"""In place of a value that could not be made; no handler can be given it."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where the records of one producer go, and what becomes of its rows before."""

    name: str
    topic: TopicName
    transform: Transform | None
    numbered: bool
    transform_seconds: float = 1.0
    """So long may the transform be at one row."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Whose rows are sent, and where."""

    dsn: str
    cluster: Cluster
    route: Route
    producer: ProducerNumber
    partition: PartitionNumber
    mark: int
    """Of which installation the records are."""

    def unfit(self, serial: int, row: bytes, reason: str) -> Unfit:
        """One of them of which no record can be made."""
        return Unfit(self.producer, self.partition, Serial(serial), digest_of(row), reason)


@dataclass(frozen=True, slots=True)
class Sent:
    """How many were sent, and what is behind them: a row that is unfit, or one that takes too long."""

    count: int
    unfit: Unfit | None = None
    slow: Serial | None = None


def send_rows(task: Rows, rows: pa.RecordBatch, *, decided: bool, seconds: float) -> Sent:
    """Send them, up to the first that cannot be sent, or at which the transform is for so many seconds."""
    values, serials = rows.column("value").to_pylist(), rows.column("serial").to_pylist()
    epochs = rows.column("epoch").to_pylist()
    if decided and _is_decided(task, serials[0], values[0]):
        return append(task, values, [_HOLLOW], serials, epochs, [digest_of(values[0])])
    transform = task.route.transform
    if transform is None:
        return append(task, values, values, serials, epochs)
    made: list[bytes] = []
    reason, slow = "", None
    try:
        with interrupting(seconds, SlowError, DEAF_SECONDS):
            reason = make_records(transform, values, made)
    except SlowError:
        slow = Serial(serials[len(made)])
    sent = append(task, values, made, serials, epochs)
    if sent.unfit is not None:
        return sent
    place = len(made)
    return Sent(sent.count, task.unfit(serials[place], values[place], reason) if reason else None, slow)


def append(
    task: Rows,
    rows: Sequence[bytes],
    records: Sequence[bytes],
    serials: Sequence[int],
    epochs: Sequence[int],
    digests: Sequence[bytes] | None = None,
) -> Sent:
    """Append records, the first of so many rows; `Unavailable` when Kafka does not acknowledge them."""
    count = len(records)
    if not count:
        return Sent(0)
    digests = [digest_of(record) for record in records] if digests is None else digests
    numbers = [Serial(serial) for serial in serials[:count]]
    batch = Batch([task.producer] * count, numbers, list(epochs[:count]), digests, records, task.mark)  # type: ignore[arg-type]
    answer = sender_to(task.cluster).send(SendRecords(task.route.topic, task.partition, batch))
    if isinstance(answer, TooLarge):
        place = answer.place
        reason = f"Kafka does not take {len(records[place])} bytes: {answer.reason}"
        return Sent(place, task.unfit(serials[place], rows[place], reason))
    if not isinstance(answer, Done):
        what = f"Kafka did not acknowledge the records of {task.route.name}: {sender_to(task.cluster).reason}"
        raise Unavailable(what, code="ZT502")
    return Sent(count)


def _is_decided(task: Rows, serial: int, row: bytes) -> bool:
    with closing(Session(task.dsn, "zerotail producer", patience_seconds=_DATABASE_SECONDS)) as session:
        found = session.read(
            lambda c: is_decided_at_the_door(c, task.producer, task.partition, Serial(serial), digest_of(row))
        )
    if not isinstance(found, bool):
        raise Unavailable("the database does not answer", code="ZT301")
    return found


def stop_at(dsn: str, unfit: Unfit) -> None:
    """List the row at which its producer stops in its partition."""
    with closing(Session(dsn, "zerotail producer", patience_seconds=_DATABASE_SECONDS)) as session:
        stored = session.write(lambda connection: record_at_the_door(connection, unfit))
    if not isinstance(stored, Done):
        raise Unavailable("the database does not answer", code="ZT301")


@cache
def sender_to(cluster: Cluster) -> RecordSender:
    """One client per worker: it keeps its connections and its place in the idempotent sequence."""
    return RecordSender(cluster)
