"""Append records to a partition, in order.

The client is idempotent and waits for all in-sync replicas. When it gives up on a record nobody knows what is in the
log; the client is then thrown away with everything it had queued, and the next attempt begins with a new one. Sending
the same records again is harmless: the stage drops repeats by their serials.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from zerotail.core.record import HEADER_NAME, Header, encode
from zerotail.ports import Batch, Done, Indefinite, SendRecords, Unreachable

_DELIVERY_SECONDS = 10.0
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

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client: Producer | None = None
        self._failed: list[KafkaError] = []

    def send(self, effect: SendRecords) -> Done | Unreachable | Indefinite:
        """Append a batch and wait until all of it is acknowledged."""
        client = self._connected()
        try:
            self._queue(client, effect)
            left = client.flush(_DELIVERY_SECONDS)
        except KafkaException:
            left = 1
        if left or self._failed:
            self.close()
            return Indefinite()
        return Done()

    def close(self) -> None:
        """Throw the client away with what it had queued."""
        if self._client is not None:
            self._client.purge()
            self._client.flush(0)
            self._client = None
        self._failed = []

    def _queue(self, client: Producer, effect: SendRecords) -> None:
        topic, partition = effect.topic, effect.partition
        for value, header in zip(effect.records.values, headers_of(effect.records), strict=True):
            while True:
                try:
                    client.produce(topic, value=value, partition=partition, headers=[(HEADER_NAME, header)])
                    break
                except BufferError:  # the queue is full: let it drain
                    client.poll(0.05)

    def _connected(self) -> Producer:
        if self._client is None:
            self._client = Producer(
                {**SETTINGS, "bootstrap.servers": self._bootstrap, "on_delivery": self._note_failure}
            )
        return self._client

    def _note_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)


def headers_of(records: Batch) -> list[bytes]:
    """The headers of a batch of records."""
    columns = zip(records.epochs, records.producers, records.serials, records.digests, strict=True)
    return [encode(Header(epoch, producer, serial, digest)) for epoch, producer, serial, digest in columns]
