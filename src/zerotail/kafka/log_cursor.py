"""A client that reads one partition from place to place, up to an end that is known.

It was assigned its partition, joins no group, commits nothing, and reads ahead no more than it was allowed. It is sent
to a number, never to "the beginning": asking where that is costs the client half a second.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.errors import Unavailable

_ANSWER_SECONDS = 60.0
_POLL_SECONDS = 0.2


class LogCursor:
    """Reads from where it was moved to; None tells the end."""

    def __init__(self, settings: Mapping[str, Any], topic: TopicName, partition: PartitionNumber) -> None:
        self._topic, self._partition = topic, partition
        self._consumer = Consumer(dict(settings))
        self._next = self._end = 0

    def move(self, start: Offset, end: Offset) -> None:
        """Read from `start` on, up to the record before `end`."""
        self._next, self._end = start, end
        if start < end:
            self._consumer.assign([TopicPartition(self._topic, self._partition, start)])

    def poll(self, most: int) -> list[Message] | None:
        """The next messages, one at least; None behind the last."""
        silent_at = time.monotonic() + _ANSWER_SECONDS
        while self._next < self._end:
            # No more than there can be: the client waits until it has as many as were asked for.
            try:
                polled = self._consumer.consume(min(most, self._end - self._next), _POLL_SECONDS)
            except KafkaException as error:
                raise self._silent(error.args[0].str()) from error
            messages = self._records(polled)
            if messages:
                return messages
            if time.monotonic() > silent_at:
                raise self._silent("no answer in time")
        return None

    def close(self) -> None:
        """Give the client back."""
        self._consumer.close()

    def _records(self, polled: list[Message]) -> list[Message]:
        """The records before the end, without what the client has to say besides: that comes in a message's place."""
        said = any(map(Message.error, polled))
        records = [one for one in polled if not self._is_end(one)] if said else polled
        found = len(records)
        while records and (records[-1].offset() or 0) >= self._end:
            records.pop()
        if records:
            self._next = (records[-1].offset() or 0) + 1
        if said or len(records) < found:  # what is left are markers of transactions
            self._end = self._next
        return records

    def _is_end(self, message: Message) -> bool:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise self._silent(error.str())
        return error is not None

    def _silent(self, reason: str) -> Unavailable:
        return Unavailable(
            f"partition {self._partition} of topic {self._topic} cannot be read: {reason}",
            code="ZT540",
            tries=["zerotail status", "zerotail restore run …    # reads it again; nothing was changed"],
        )
