"""Append records to a partition, in order.

The client is idempotent and waits for all in-sync replicas. When it gives up on a record nobody knows what is in the
log; the client is then thrown away with everything it had queued, and the next attempt begins with a new one. Sending
the same records again is harmless: the stage drops repeats by their serials.

A record that is larger than the client or the topic takes is named, and what lies in front of it is sent: it would be
refused again and again, and everything behind it would wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.core.record import HEADER_BYTES, HEADER_NAME, encode_column
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.complaint import Complaints
from zerotail.ports import Batch, Done, Indefinite, SendRecords, TooLarge, Unreachable

_DELIVERY_SECONDS = 10.0
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_STANDS_OUT = 4
"""A record so many times as large as the mean is the first one to be suspected."""
SETTINGS = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "queue.buffering.max.messages": 500_000,
    "delivery.timeout.ms": int(_DELIVERY_SECONDS * 1000),
    "delivery.report.only.error": True,
    "log_level": 0,
}


class RecordSender:
    """A producer client that is made when it is needed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client: Producer | None = None
        self._failed: list[KafkaError] = []
        self._complaints = Complaints()

    @property
    def reason(self) -> str:
        """Why records were not acknowledged, as far as the client knows."""
        return self._complaints.behind("no answer in time")

    def open(self) -> None:
        """Connect now: until an idempotent client may send, half a second passes."""
        self._connected()

    def send(self, effect: SendRecords) -> Done | Unreachable | Indefinite | TooLarge:
        """Append a batch and wait until all of it is acknowledged."""
        values, headers = effect.records.values, headers_of(effect.records)
        return self._send(effect, values, headers, 0, len(values))

    def _send(
        self, effect: SendRecords, values: Sequence[bytes], headers: Sequence[bytes], first: int, end: int
    ) -> Done | Indefinite | TooLarge:
        """Append the records from `first` up to but without `end`; where one is too large, those in front of it."""
        answer = self._attempt(effect, zip(values[first:end], headers[first:end], strict=True))
        if not isinstance(answer, TooLarge):
            return answer
        if end - first == 1:
            return TooLarge(first, answer.reason)
        for part in _parts(values, first, end):
            said = self._send(effect, values, headers, *part)
            if not isinstance(said, Done):
                return said
        return Done()

    def _attempt(self, effect: SendRecords, records: Iterable[tuple[bytes, bytes]]) -> Done | Indefinite | TooLarge:
        """Append them all; `TooLarge` when one of them is, whichever."""
        client = self._connected()
        refused: KafkaError | None = None
        try:
            queue_records(client, effect.topic, effect.partition, records)
        except KafkaException as error:
            refused = error.args[0]
        left = client.flush(_DELIVERY_SECONDS)
        if not left and not self._failed and refused is None:
            return Done()
        large = next((one for one in (refused, *self._failed) if one is not None and one.code() in _TOO_LARGE), None)
        if left or self._failed or large is None:
            self.close()
        return Indefinite() if large is None else TooLarge(0, large.str())

    def close(self) -> None:
        """Throw the client away with what it had queued."""
        if self._client is not None:
            self._client.purge()
            self._client.flush(0)
            self._client = None
        self._failed = []

    def _connected(self) -> Producer:
        if self._client is None:
            settings: dict[str, Any] = {**SETTINGS, **self._cluster.for_client(), "on_delivery": self._note_failure}
            settings["error_cb"] = self._complaints.note
            self._client = Producer(settings)
        return self._client

    def _note_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)


def _parts(values: Sequence[bytes], first: int, end: int) -> list[tuple[int, int]]:
    """Smaller batches: around the largest record where that one stands out, else halves."""
    sizes = [len(value) for value in values[first:end]]
    largest = first + sizes.index(max(sizes))
    if max(sizes) * len(sizes) > _STANDS_OUT * sum(sizes):
        parts = [(first, largest), (largest, largest + 1), (largest + 1, end)]
    else:
        parts = [(first, (first + end) // 2), ((first + end) // 2, end)]
    return [(begin, stop) for begin, stop in parts if begin < stop]


def queue_records(
    client: Producer, topic: TopicName, partition: PartitionNumber, records: Iterable[tuple[bytes, bytes]]
) -> None:
    """Queue values, each with its header, in order; waits while the client's queue is full.

    By position: names would cost a quarter of the call.
    """
    produce = client.produce
    for value, header in records:
        while True:
            try:
                produce(topic, value, None, partition, None, None, 0, [(HEADER_NAME, header)])
                break
            except BufferError:  # let it drain
                client.poll(0.01)


def headers_of(records: Batch) -> list[bytes]:
    """The headers of a batch of records."""
    if not records.serials:
        return []
    digests = np.frombuffer(b"".join(records.digests), dtype="<u8")
    column = encode_column(
        np.asarray(records.epochs), np.asarray(records.producers), np.asarray(records.serials), digests, records.mark
    )
    packed = column.buffers()[2].to_pybytes()
    return [packed[place : place + HEADER_BYTES] for place in range(0, len(packed), HEADER_BYTES)]
