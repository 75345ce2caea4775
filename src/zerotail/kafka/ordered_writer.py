"""Append records to a partition in order, each once, whatever interrupts the writing.

The records go out in transactions under an identity of the partition's own. Opening a writer ends what an earlier one
with the same identity left open and shuts it off, so that the end of the log, read afterwards by `read_committed`, is
where to go on: nothing is written twice, and a reader that asks for committed records never sees a broken-off piece.
Timestamps are those of the writing, so that retention does not take old records for old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable, Unfinished
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.complaint import Complaints
from zerotail.kafka.log import admin_client, wait_until_readable
from zerotail.kafka.producer import SETTINGS, queue_records

RECORDS_PER_TRANSACTION = 200_000
_QUEUED_MESSAGES, _QUEUED_KILOBYTES = 100_000, 32_000
"""What the client holds at the most; more does not make it faster."""
_SECONDS = 60.0
_TRANSACTION_SECONDS = 120.0


class OrderedWriter:
    """Writes one partition; what was not committed when it is closed is not in the log."""

    def __init__(self, cluster: Cluster, topic: TopicName, partition: PartitionNumber, installation: str = "") -> None:
        """Of two writers of one installation and partition the later one goes on."""
        self._topic, self._partition = topic, partition
        self._complaints = Complaints()
        self._failed: list[KafkaError] = []
        self._admin = admin_client(cluster)
        self._waiting = 0
        self.written = 0
        """Records in committed transactions."""
        settings: dict[str, Any] = {
            **SETTINGS,
            **cluster.for_client(),
            "transactional.id": "-".join(filter(None, ("zerotail-refill", installation, topic, str(partition)))),
            "transaction.timeout.ms": int(_TRANSACTION_SECONDS * 1000),
            "delivery.timeout.ms": int(_SECONDS * 1000),
            "linger.ms": 20,
            "queue.buffering.max.messages": _QUEUED_MESSAGES,
            "queue.buffering.max.kbytes": _QUEUED_KILOBYTES,
            "on_delivery": self._note_failure,
            "error_cb": self._complaints.note,
        }
        self._client = Producer(settings)
        try:
            self._client.init_transactions(_SECONDS)
        except (KafkaException, SystemError) as error:
            raise Unavailable(
                f"partition {partition} of topic {topic} cannot be written: {self._reason(error)}", code="ZT541"
            ) from error

    def write(self, values: Sequence[bytes], headers: Sequence[bytes]) -> None:
        """Queue records; they count when `commit` has returned."""
        if not values:
            return
        try:
            if not self._waiting:
                self._client.begin_transaction()
            queue_records(self._client, self._topic, self._partition, zip(values, headers, strict=True))
        except (KafkaException, SystemError) as error:
            raise self._unfinished(error) from error
        self._waiting += len(values)

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self._waiting >= RECORDS_PER_TRANSACTION

    def commit(self) -> None:
        """Make everything that was queued part of the log; returns when readers see it."""
        if not self._waiting:
            return
        try:
            self._client.commit_transaction(_TRANSACTION_SECONDS)
            self.written += self._waiting
            self._waiting = 0
            wait_until_readable(self._admin, self._topic, self._partition, Deadline.after(_TRANSACTION_SECONDS))
        except (KafkaException, SystemError) as error:
            raise self._unfinished(error) from error

    def close(self) -> None:
        """Take back what was not committed."""
        if self._waiting:
            self._waiting = 0
            try:
                self._client.purge()
                self._client.abort_transaction(_SECONDS)
            except (KafkaException, SystemError):
                return  # the next writer, or the broker's time-out, ends it

    def _note_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _reason(self, error: BaseException) -> str:
        said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        return self._complaints.behind(self._failed[0].str() if self._failed else said)

    def _unfinished(self, error: BaseException) -> Unfinished:
        return Unfinished(
            f"writing partition {self._partition} of topic {self._topic} stopped after {self.written} records: "
            f"{self._reason(error)}",
            code="ZT840",
            tries=["the same line again    # it goes on behind the last record that is there"],
        )
