"""Records in Kafka: appended, read, and where a log ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zerotail.core.head import Hint
from zerotail.core.identity import (
    Epoch,
    PartitionNumber,
    ProducerNumber,
    Serial,
    TopicName,
)
from zerotail.core.installation import NO_MARK, UNMARKED, Installation
from zerotail.ports.story import Effect, Result


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Records by column, in offset order, as plain numbers; a record without our header has producer 0."""

    producers: Sequence[ProducerNumber]
    serials: Sequence[Serial]
    epochs: Sequence[Epoch]
    digests: Sequence[bytes]
    values: Sequence[bytes]
    mark: int = NO_MARK
    """Of records that are to be sent: of which installation they are."""
    strangers: int = 0
    """Of records that were read: those of other installations, which are foreign."""


class SendRecords(Effect, frozen=True):
    """Append records to a partition, in order."""

    topic: TopicName
    partition: PartitionNumber
    records: Batch


class TooLarge(Result, frozen=True):
    """Kafka does not take this record, whoever sends it how often; those in front of it are in the log."""

    place: int
    """In the batch, counted from 0."""
    reason: str


class PollRecords(Effect, frozen=True):
    """Read a batch at a hint; at the beginning of the log when there is none."""

    topic: TopicName
    partition: PartitionNumber
    hint: Hint | None
    limit: int
    installation: Installation = UNMARKED
    """Whose records are not foreign."""


class Polled(Result, frozen=True):
    """A batch, where to read on, and the time at which it was read, in microseconds."""

    batch: Batch
    hint: Hint
    at: int


class HintLost(Result, frozen=True):
    """The log is another one, or does not reach to the hint any more."""


class ReadLogEnd(Effect, frozen=True):
    """Look at the end of a log."""

    topic: TopicName
    partition: PartitionNumber
    installation: Installation = UNMARKED
    """Whose records are not foreign."""


class LogEnd(Result, frozen=True):
    """The end of a log, and which record lies there."""

    hint: Hint
    producer: ProducerNumber
    serial: Serial
    """0 when the log is empty."""
    read: int = 0
    """Records that were read to find it."""
