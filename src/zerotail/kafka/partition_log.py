"""A partition as batches of columns, read as often as one likes: what restorations and their proofs read.

librdkafka's Python client gives one object per message, so a few calls per message are the price of reading; everything
behind them works on columns. A cursor is a client of its own that was assigned one partition, joins no group, commits
nothing, and reads ahead no more than it was allowed. The end is settled when the log is opened for the first time, so
that all cursors read the same records.

Records of another history (see `core/admission.py`) are left out here and counted as foreign: what follows goes by
serials, and an orphan may bear the serial of a record that was applied.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from zerotail.core.admission import Limits
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.record import HEADER_NAME
from zerotail.core.restoration.batch import OFFSET_NAME, Batch
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.cursor import SETTINGS
from zerotail.kafka.log import MissingTopicError, admin_client, find_partition_count, log_bounds

ROWS_PER_POLL = 10_000
READ_AHEAD_BYTES = 16_000_000
_ANSWER_SECONDS = 60.0
_POLL_SECONDS = 0.2
_FETCH_BYTES = 1_048_576
SCHEMA = pa.schema([(HEADER_NAME, pa.binary()), (OFFSET_NAME, pa.int64()), ("value", pa.binary())])


@dataclass(frozen=True)
class PartitionLog:
    """One partition, from its beginning to the end it had when it was first looked at."""

    cluster: Cluster
    topic: TopicName
    partition: PartitionNumber
    limits: Limits | None = None
    """What counts of each epoch; None takes all."""
    rows_per_poll: int = ROWS_PER_POLL
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
        for messages in self.poll(offset):
            yield self.batch_of(messages)

    def poll(self, offset: Offset | None, until: Offset | None = None) -> Iterator[list[Message]]:
        """The messages themselves, a poll at a time, up to an offset or to the end."""
        first, behind = self.bounds
        end = behind if until is None else min(until, behind)
        start = first if offset is None else max(offset, first)
        if start >= end:
            return
        consumer = Consumer(self.client_settings())
        try:
            place = OFFSET_BEGINNING if start == first else start
            consumer.assign([TopicPartition(self.topic, self.partition, place)])
            yield from self._until(consumer, Offset(start), end)
        except KafkaException as error:
            raise self._silent(error.args[0].str()) from error
        finally:
            consumer.close()

    def look_at(self, offsets: Sequence[int], rows: int) -> Iterator[Batch]:
        """The few records that lie at each of some offsets, read with one client."""
        first, behind = self.bounds
        if first == behind:
            return
        consumer = Consumer(self.client_settings())
        try:
            for offset in offsets:
                start = Offset(min(max(offset, first), behind - 1))
                consumer.assign([TopicPartition(self.topic, self.partition, start)])
                found = next(self._until(consumer, start, Offset(min(behind, start + rows))), [])
                if found:
                    yield self.batch_of(found)
        except KafkaException as error:
            raise self._silent(error.args[0].str()) from error
        finally:
            consumer.close()

    def _until(self, consumer: Consumer, start: Offset, end: Offset) -> Iterator[list[Message]]:
        heard, following = time.monotonic(), int(start)
        while True:
            # No more than there can be: the client waits until it has as many as were asked for.
            messages = consumer.consume(min(self.rows_per_poll, end - following), _POLL_SECONDS)
            if not messages:
                if time.monotonic() - heard > _ANSWER_SECONDS:
                    raise self._silent("no answer in time")
                continue
            heard = time.monotonic()
            # What the client has to say besides comes in the place of a message.
            said = [one for one in messages if one.error()]
            finished = any(map(_is_end, said))
            if said:
                messages = [one for one in messages if not one.error()]
            while messages and (messages[-1].offset() or 0) >= end:
                messages.pop()
                finished = True
            if messages:
                following = (messages[-1].offset() or 0) + 1
                yield messages
                finished = finished or following >= end
            if finished:
                return

    def batch_of(self, messages: list[Message]) -> Batch:
        """Messages as columns; those of another history are gone."""
        headers = [
            entries[0][1] if (entries := one.headers()) and entries[0][0] == HEADER_NAME else _find_header(entries)  # type: ignore[index]
            for one in messages
        ]
        payload = pa.record_batch(
            [
                pa.array(headers, pa.binary()),
                pa.array(_offsets(messages)),
                pa.array([one.value() for one in messages], pa.binary()),
            ],
            schema=SCHEMA,
        )
        return Batch.of(payload) if self.limits is None else Batch.within(payload, self.limits)

    def client_settings(self) -> dict[str, Any]:
        """How a cursor reads."""
        return {
            **SETTINGS,
            "isolation.level": "read_committed",
            "check.crcs": True,
            "queued.min.messages": 100_000,
            "queued.max.messages.kbytes": max(1, self.read_ahead_bytes // 1000),
            "fetch.message.max.bytes": min(_FETCH_BYTES, max(1_000, self.read_ahead_bytes // 4)),
            **self.cluster.for_client(),
        }

    def _silent(self, reason: str) -> Unavailable:
        return Unavailable(
            f"partition {self.partition} of topic {self.topic} cannot be read: {reason}",
            code="ZT540",
            tries=["zerotail status", "zerotail restore run …    # reads it again; nothing was changed"],
        )


def _is_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    raise KafkaException(error)


def _offsets(messages: list[Message]) -> np.ndarray:
    """The offsets of a poll: they rise, so that the first and the last often say all of them."""
    first, last = messages[0].offset() or 0, messages[-1].offset() or 0
    if last - first + 1 == len(messages):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.array([one.offset() for one in messages], dtype=np.int64)


def _find_header(entries: Any) -> bytes | None:
    for entry in entries or ():
        if entry[0] == HEADER_NAME and isinstance(entry[1], bytes):
            return entry[1]
    return None
