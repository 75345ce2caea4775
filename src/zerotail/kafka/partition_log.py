"""A partition as batches of columns, read as often as one likes: what restorations and their proofs read.

librdkafka's Python client gives one object per message, so a few calls per message are the price of reading; everything
behind them works on columns. The objects are taken apart a few at a time, while they still lie in the processor's
cache, and while the garbage collector rests. Each cursor is a client of its own. The end is settled when the log is
opened for the first time, so that all cursors read the same records.

Records of another history (see `core/admission.py`) are left out here and counted as foreign: what follows goes by
serials, and an orphan may bear the serial of a record that was applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property

from confluent_kafka import Message

from zerotail.core.admission import Limits
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.installation import Installation
from zerotail.core.restoration.batch import Batch
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.garbage import collection_paused
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.columns import Columns
from zerotail.kafka.cursor import SETTINGS
from zerotail.kafka.log import MissingTopicError, admin_client, find_partition_count, log_bounds
from zerotail.kafka.log_cursor import LogCursor

ROWS_PER_BATCH = 10_000
_MOST_ROWS_PER_POLL = 1_000
READ_AHEAD_BYTES = 16_000_000
_ANSWER_SECONDS = 60.0
_FETCH_BYTES = 1_048_576


@dataclass(frozen=True)
class PartitionLog:
    """One partition, from its beginning to the end it had when it was first looked at."""

    cluster: Cluster
    topic: TopicName
    partition: PartitionNumber
    limits: Limits | None = None
    """What counts of each epoch; None takes all."""
    installation: Installation | None = None
    """Whose records are not foreign; None takes all."""
    rows_per_batch: int = ROWS_PER_BATCH
    read_ahead_bytes: int = READ_AHEAD_BYTES

    @cached_property
    def bounds(self) -> tuple[Offset, Offset]:
        """The first offset, and the one behind the last; `MissingTopicError` when there is no such topic."""
        client = admin_client(self.cluster)
        if find_partition_count(client, self.topic) is None:
            raise MissingTopicError(f"Kafka has no topic {self.topic}.", code="ZT501")

        def find_bounds() -> tuple[Offset, Offset] | None:
            try:
                return log_bounds(client, self.topic, [self.partition])[self.partition]
            except Unavailable:
                return None

        # A topic that was made a moment ago has no leader yet.
        return wait_until(f"topic {self.topic} has a leader", find_bounds, Deadline.after(_ANSWER_SECONDS))

    @property
    def records(self) -> int:
        """How many offsets it has; markers of transactions count as well."""
        first, behind = self.bounds
        return behind - first

    def open(self, offset: Offset | None) -> Iterator[Batch]:
        """The records from this offset on, None for all; it ends, it does not wait for more."""
        with self.reading(offset) as cursor:
            while len(columns := self._take(cursor)):
                yield self._batch(columns)

    def poll(self, offset: Offset | None, until: Offset | None = None) -> Iterator[list[Message]]:
        """The messages themselves, a poll at a time, up to an offset or to the end."""
        with self.reading(offset, until) as cursor:
            while (messages := cursor.poll(self._rows_per_poll)) is not None:
                yield messages

    def look_at(self, offsets: Sequence[int], rows: int) -> Iterator[Batch]:
        """The few records that lie at each of some offsets, read with one client."""
        first, behind = self.bounds
        if first == behind:
            return
        with closing(self._cursor()) as cursor:
            for offset in offsets:
                start = Offset(min(max(offset, first), behind - 1))
                cursor.move(start, Offset(min(behind, start + rows)))
                found = cursor.poll(rows)
                if found:
                    yield self.batch_of(found)

    @contextmanager
    def reading(self, offset: Offset | None, until: Offset | None = None) -> Iterator[LogCursor]:
        """A cursor that reads from an offset, or from the first one, to another, or to the end."""
        first, behind = self.bounds
        with closing(self._cursor()) as cursor:
            cursor.move(
                first if offset is None else Offset(max(offset, first)),
                behind if until is None else Offset(min(until, behind)),
            )
            yield cursor

    def _cursor(self) -> LogCursor:
        """A cursor that is nowhere yet."""
        settings = {
            **SETTINGS,
            "isolation.level": "read_committed",
            "check.crcs": True,
            "queued.min.messages": 100_000,
            "queued.max.messages.kbytes": max(1, self.read_ahead_bytes // 1000),
            "fetch.message.max.bytes": min(_FETCH_BYTES, max(1_000, self.read_ahead_bytes // 4)),
            **self.cluster.for_client(),
        }
        return LogCursor(settings, self.topic, self.partition)

    @property
    def _rows_per_poll(self) -> int:
        return min(self.rows_per_batch, _MOST_ROWS_PER_POLL)

    def _take(self, cursor: LogCursor) -> Columns:
        """The next records, as many as a batch has; none at the end."""
        columns = Columns()
        with collection_paused():
            while len(columns) < self.rows_per_batch:
                messages = cursor.poll(min(self._rows_per_poll, self.rows_per_batch - len(columns)))
                if messages is None:
                    break
                columns.take(messages)
                del messages  # before the next poll, and before the collector is back
        return columns

    def batch_of(self, messages: list[Message]) -> Batch:
        """Messages as columns; those of another history are gone."""
        columns = Columns()
        columns.take(messages)
        return self._batch(columns)

    def _batch(self, columns: Columns) -> Batch:
        payload = columns.payload()
        if self.limits is None:
            return Batch.of(payload, self.installation)
        return Batch.within(payload, self.limits, self.installation)
