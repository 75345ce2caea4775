"""A topic outside: append to it, as a transaction or not, and read what lies at its end.

A transactional id is a fence: `open` ends whatever the one before had begun with the same id and lets it do nothing
more. When anything goes wrong the client is thrown away; whether its transaction was committed is decided by the next
`open`, which waits until that is settled, and read from the end of the topic after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.deadline import Deadline
from zerotail.kafka.cursor import SETTINGS as READING
from zerotail.kafka.producer import SETTINGS as WRITING
from zerotail.ports import Done, Indefinite, Refused, Unreachable

T = TypeVar("T")
Headers = Mapping[str, bytes]
Record = tuple[bytes, Headers]
"""A value and its headers."""
_UNKNOWN = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)
# A fatal error comes out of whatever is called next; behind a callback it comes out as a SystemError.
_ERRORS = (KafkaException, SystemError)
_FIRST_LOOK = 2
"""The last record, and the mark of the transaction that it came in."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """One partition of a topic outside, and how to reach it."""

    settings: Mapping[str, str]
    """Of the client: brokers and security."""
    topic: TopicName
    partition: PartitionNumber
    timeout_seconds: float = 10.0

    def __str__(self) -> str:
        return f"partition {self.partition} of topic {self.topic}"


class TopicWriter:
    """Appends to one place; with an `identity`, every batch is a transaction under that fence."""

    def __init__(self, place: Place, identity: str | None) -> None:
        self._place = place
        self._identity = identity
        self._client: Producer | None = None
        self._failed = False

    @property
    def is_open(self) -> bool:
        """Whether nothing has gone wrong since `open`."""
        return self._client is not None

    def open(self) -> Done | Unreachable:
        """Begin anew: end what an earlier writer of this identity left open, and fence it."""
        self.close()
        milliseconds = int(self._place.timeout_seconds * 1000)
        settings: dict[str, Any] = {**WRITING, **self._place.settings, "on_delivery": self._note}
        settings["delivery.timeout.ms"] = milliseconds
        if self._identity is not None:
            settings |= {"transactional.id": self._identity, "transaction.timeout.ms": max(2 * milliseconds, 10_000)}
        client = Producer(settings)
        try:
            if self._identity is not None:
                client.init_transactions(self._place.timeout_seconds)
        except _ERRORS:
            return Unreachable()
        self._client = client
        return Done()

    def write(self, records: Iterable[Record]) -> Done | Indefinite:
        """Append values with their headers, in order; afterwards all of them are there, or nobody knows."""
        client = self._client
        if client is None:
            return Indefinite()
        try:
            if self._identity is None:
                self._queue(client, records)
                done = client.flush(self._place.timeout_seconds) == 0 and not self._failed
            else:
                client.begin_transaction()
                self._queue(client, records)
                client.commit_transaction(self._place.timeout_seconds)
                done = True
        except _ERRORS:
            done = False
        if done:
            return Done()
        self.close()
        return Indefinite()

    def close(self) -> None:
        """Throw the client away with what it had queued."""
        if self._client is not None:
            with suppress(*_ERRORS):
                self._client.purge()
                self._client.flush(0)
            self._client = None
        self._failed = False

    def _queue(self, client: Producer, records: Iterable[Record]) -> None:
        topic, partition = self._place.topic, self._place.partition
        for value, headers in records:
            while True:
                try:
                    client.produce(topic, value=value, partition=partition, headers=dict(headers))
                    break
                except BufferError:  # the queue is full: let it drain
                    client.poll(0.05)

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        self._failed = self._failed or error is not None


@dataclass(frozen=True, slots=True)
class End:
    """The end of a partition: whether it still reaches back to its first record."""

    is_whole: bool


class TopicReader:
    """Looks for the last record of a kind in one place; sees what is committed."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._all: Consumer | None = None
        self._committed: Consumer | None = None
        self.looked_at = 0
        """Records that the last search has read."""

    def find_last(
        self, recognise: Callable[[Headers], T | None], *, hidden_too: bool = True, most: int | None = None
    ) -> T | End | Refused | Unreachable:
        """What `recognise` makes of the headers of the last record that it knows; `End` when it knows none.

        An open transaction hides everything behind it. What is hidden may be ours, so it is waited for, unless
        `hidden_too` is False. About `most` records are looked at, or all.
        """
        deadline = Deadline.after(self._place.timeout_seconds)
        try:
            return self._search(recognise, deadline, hidden_too, most)
        except _TooLateError:
            return Unreachable()
        except KafkaException as error:
            self.close()
            if error.args[0].code() in _UNKNOWN:
                return Refused(f"there is no {self._place}")
            return Unreachable()

    def end(self) -> int:
        """Where the next record goes; `KafkaException` when the partition cannot be asked."""
        return self._watermarks(Deadline.after(self._place.timeout_seconds))[1]

    def close(self) -> None:
        """Give the clients back."""
        for client in (self._all, self._committed):
            if client is not None:
                client.close()
        self._all = self._committed = None

    def _search(
        self, recognise: Callable[[Headers], T | None], deadline: Deadline, hidden_too: bool, most: int | None
    ) -> T | End:
        """Look at the last few, then at more: control records and foreign ones may lie behind what is looked for."""
        low, high = self._watermarks(deadline)
        look = _FIRST_LOOK
        self.looked_at = 0
        while True:
            start = max(low, high - look)
            messages = self._read(start, high, deadline, hidden_too)
            self.looked_at += len(messages)
            found = [known for message in messages if (known := recognise(_headers(message))) is not None]
            if found:
                return found[-1]
            if start == low or (most is not None and look >= most):
                return End(is_whole=start == 0)
            look *= 8

    def _watermarks(self, deadline: Deadline) -> tuple[int, int]:
        """Where the partition begins and ends; what is not committed yet counts, too."""
        if self._all is None:
            self._all = Consumer({**READING, **self._place.settings, "isolation.level": "read_uncommitted"})
        place = TopicPartition(self._place.topic, self._place.partition)
        low, high = self._all.get_watermark_offsets(place, timeout=max(0.1, deadline.seconds_left))
        return low, high

    def _read(self, start: int, end: int, deadline: Deadline, hidden_too: bool) -> list[Message]:
        """The committed records from `start` to `end`."""
        if self._committed is None:
            self._committed = Consumer({**READING, **self._place.settings, "isolation.level": "read_committed"})
        self._committed.assign([TopicPartition(self._place.topic, self._place.partition, start)])
        try:
            return self._read_on(self._committed, start, end, deadline, hidden_too)
        finally:
            # A client that is kept would ask for more in the background, twenty times a second and for nobody.
            self._committed.unassign()

    def _read_on(self, client: Consumer, start: int, end: int, deadline: Deadline, hidden_too: bool) -> list[Message]:
        messages: list[Message] = []
        reached = start
        while reached < end:
            if deadline.passed:
                raise _TooLateError
            for message in client.consume(1000, _POLL_SECONDS):
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                offset = message.offset() or 0
                if error is None:
                    messages.append(message)
                    reached = offset + 1
                else:
                    reached = offset if hidden_too else end
        return messages


class _TooLateError(Exception):
    """The deadline has passed."""


def _headers(message: Message) -> Headers:
    return {entry[0]: entry[1] for entry in message.headers() or () if isinstance(entry[1], bytes)}
