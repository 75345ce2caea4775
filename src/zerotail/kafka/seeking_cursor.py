"""One cursor that goes back and forth in a partition: what the notes' second program is rebuilt with."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from zerotail.core.identity import Offset
from zerotail.errors import Unavailable
from zerotail.kafka.partition_log import PartitionLog

_ANSWER_SECONDS = 60.0
_POLL_SECONDS = 0.5


class SeekingCursor:
    """Reads a partition poll by poll; `seek` goes to any offset."""

    def __init__(self, log: PartitionLog, rows_per_poll: int) -> None:
        self._log = log
        self._rows = rows_per_poll
        self._first, self._behind = log.bounds
        self._consumer = Consumer(log.client_settings())
        self._consumer.assign([TopicPartition(log.topic, log.partition, self._first)])
        self._at_end = False
        """The client says so once, perhaps together with the last records."""
        self.polls = 0

    def poll(self) -> list[Message] | None:
        """The next messages; None at the log's end."""
        if self._at_end:
            return None
        heard = time.monotonic()
        while time.monotonic() - heard < _ANSWER_SECONDS:
            self.polls += 1
            messages = self._consumer.consume(self._rows, _POLL_SECONDS)
            for error in filter(None, (one.error() for one in messages)):
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                self._at_end = True
            records = [one for one in messages if not one.error()]
            if records or self._at_end:
                return records or None
        raise Unavailable(f"topic {self._log.topic} cannot be read: no answer in time", code="ZT540")

    def seek(self, offset: Offset) -> None:
        """Go to an offset."""
        self._at_end = False
        self._consumer.seek(TopicPartition(self._log.topic, self._log.partition, offset))

    def close(self) -> None:
        """Give the client back."""
        self._consumer.close()
