"""A stage: its head, its state, its commit, and what stops it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zerotail.core.emission import Owed
from zerotail.core.head import Head, Segment, Token
from zerotail.core.identity import (
    Epoch,
    PartitionNumber,
    ProducerNumber,
    Serial,
    StageName,
    Timeline,
)
from zerotail.core.poison import Decision, Poison, RecordName
from zerotail.ports.story import Effect, Result, Standing


class ReadHead(Effect, frozen=True):
    """Read the head of a stage and partition."""

    stage: StageName
    partition: PartitionNumber


class ClaimHead(Effect, frozen=True):
    """Become the one who goes on with a stage and partition: count the head's claim up. The answer is a `HeadRead`."""

    stage: StageName
    partition: PartitionNumber


class HeadRead(Result, frozen=True):
    """The head, where its database stands, and what was decided about records that stopped the partition.

    The vector names every producer that is registered for the stage, also one that has sent nothing yet.
    """

    standing: Standing
    head: Head
    decisions: Mapping[RecordName, Decision] = {}
    stopped: Poison | None = None
    """The record at which the partition stopped, while nothing is decided about it."""


class LoadState(Effect, frozen=True):
    """Load the values of state keys; a key without a value is left out."""

    stage: StageName
    partition: PartitionNumber
    keys: Sequence[str]


class StateLoaded(Result, frozen=True):
    """Encoded values by key."""

    values: Mapping[str, bytes]
    clock: int | None = None
    """What the database's own clock says, in microseconds since 1970, if it has one."""


class Commit(Effect, frozen=True):
    """One micro-batch in one transaction, if the head is still `expected` and the timeline still ours."""

    stage: StageName
    partition: PartitionNumber
    expected: Token
    timeline: Timeline
    head: Head
    segment: Segment
    state: Mapping[str, bytes | None]
    outbox: Owed


class RequestAgain(Effect, frozen=True):
    """Ask producers to send again from a serial on; asking for the same serial twice is one request."""

    stage: StageName
    partition: PartitionNumber
    epoch: Epoch
    gaps: Mapping[ProducerNumber, Serial]


class RecordPoison(Effect, frozen=True):
    """Say that a partition has stopped at a record, if the head is still `expected`; a decision about it that did not
    help is taken back.
    """

    stage: StageName
    partition: PartitionNumber
    expected: Token
    poison: Poison
