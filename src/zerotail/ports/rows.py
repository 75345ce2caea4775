"""Rows: instructions that are submitted, and those that producers read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zerotail.core.emission import Lane
from zerotail.core.identity import (
    Lsn,
    PartitionNumber,
    ProducerNumber,
    Serial,
    StageName,
    TopicName,
)
from zerotail.ports.story import Effect, Result, Standing


class Feed(msgspec.Struct, frozen=True, gc=False):
    """Where a producer's records come from: instruction rows, or the outbox of an upstream stage."""

    producer: ProducerNumber
    topic: TopicName
    partition: PartitionNumber
    """Of the topic that is written to."""
    consumer: StageName
    """The stage whose vector says how far the records have come."""
    lane: Lane | None = None
    """The lane of the upstream stage, when the feed is an outbox."""


class Submit(Effect, frozen=True):
    """Store an instruction under the client's own identifier, and number it; storing it again finds it."""

    producer: ProducerNumber
    partition: PartitionNumber
    id: str
    value: bytes


class Held(Result, frozen=True):
    """It is stored at a site that works without the other one, and holds: accepted when both have it, not before."""


class Submitted(Result, frozen=True):
    """The row is there, locally."""

    standing: Standing
    serial: Serial
    position: Lsn


class ReadFeed(Effect, frozen=True):
    """Read rows behind `after`, or behind the consumer's vector when `after` is None."""

    feed: Feed
    after: Serial | None
    limit: int


class Fed(Result, frozen=True):
    """Rows in serial order, and how far the consumer has come."""

    standing: Standing
    position: Lsn
    vector: Serial
    request: int
    """Number of the last request to send again."""
    first: Serial
    """Serial of the first row."""
    values: Sequence[bytes]
    stopped: bool = False
    """Whether the consumer waits for an operator: then its vector stands still for a reason."""
