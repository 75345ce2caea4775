"""Effects: everything that the decisions of this system ask of the world, and everything the world may
answer.

The stories in `flow/` and `failover/` are generators. They yield one of the effects below and receive its
result; they do nothing else, so that one and the same code is driven by psycopg, confluent-kafka and Spark
tasks in production and by the simulated world in tests.

1. An effect is coarse: one database transaction, one poll, one batch. Never one record.
2. An effect works at the site of the process that yields it, unless it names a site.
3. `Unreachable` means that nothing happened. `Indefinite` means that nobody knows: it must be found out by
   reading, never by repeating. `Refused` is a rule of the other side that said no, with its reason.
4. A result that carries rows carries the standing of the database they came from, read in the same
   snapshot; a `position` was taken *after* the rows, so it covers them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import msgspec

from zerotail.core.emission import Lane, Owed
from zerotail.core.epoch import Durability, Lineage, Phase, live_at
from zerotail.core.gate import Asker, Release
from zerotail.core.head import Head, Hint, Segment, Token
from zerotail.core.identity import (
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    TopicName,
)
from zerotail.core.poison import Decision, Poison, RecordName
from zerotail.core.receiver import LaneRecord

T = TypeVar("T")
Story: TypeAlias = Generator["Effect", Any, T]
"""A decision in progress: yields effects, receives their results, returns what came of it."""


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Something that the world is asked to do."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """Something that the world answers."""


# Answers that every effect may get.


class Unreachable(Result, frozen=True):
    """Nobody answered, and nothing happened."""


class Indefinite(Result, frozen=True):
    """It may have happened or not."""


class Refused(Result, frozen=True):
    """The other side said no; nothing happened."""

    reason: str = ""


class Done(Result, frozen=True):
    """It happened; `position` covers what was written."""

    position: Lsn = Lsn(0)


class Standing(Result, frozen=True):
    """Where a database stands: its epochs, its timeline (None while it is a standby), and which database it
    is.
    """

    lineage: Lineage
    timeline: Timeline | None
    system: int
    rejoined: Mapping[SiteName, Epoch] = {}
    """In which epoch a site came back, which is part of its topics' names."""

    @property
    def epoch(self) -> Epoch:
        """The epoch in which this database is."""
        return self.lineage.current.epoch

    def live_at(self, site: SiteName) -> bool:
        """Whether the processes of a site whose database this is may work."""
        return live_at(self.lineage, site, self.timeline)

    @property
    def asker(self) -> Asker:
        """As whom rows of this database ask for release."""
        return Asker(self.system, self.timeline or Timeline(0), self.epoch)


class End(Enum):
    """Why a story ended by itself."""

    NOT_ACTIVE = "this site is not the one that works"
    SUPERSEDED = "a newer epoch or a newer instance is at work"
    OUT_OF_STEP = "the receiver stands elsewhere; a new claim finds out where"


class Pause(Effect, frozen=True):
    """There is nothing to do right now, and why."""

    reason: str


# Submission and producers.


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


# Kafka.


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Records by column, in offset order, as plain numbers; a record without our header has producer 0."""

    producers: Sequence[ProducerNumber]
    serials: Sequence[Serial]
    epochs: Sequence[Epoch]
    digests: Sequence[bytes]
    values: Sequence[bytes]


class SendRecords(Effect, frozen=True):
    """Append records to a partition, in order."""

    topic: TopicName
    partition: PartitionNumber
    records: Batch


class PollRecords(Effect, frozen=True):
    """Read a batch at a hint; at the beginning of the log when there is none."""

    topic: TopicName
    partition: PartitionNumber
    hint: Hint | None
    limit: int


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


class LogEnd(Result, frozen=True):
    """The end of a log, and which record lies there."""

    hint: Hint
    producer: ProducerNumber
    serial: Serial
    """0 when the log is empty."""


# A stage.


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


# The gate and the outside.


class AskGate(Effect, frozen=True):
    """Ask the remote standby for everything that the gate compares, in one statement."""


class ClaimLane(Effect, frozen=True):
    """Become the sender of a lane: count its incarnation up, in the current epoch."""

    lane: Lane


class LaneClaimed(Result, frozen=True):
    """The new incarnation; `position` covers it."""

    standing: Standing
    incarnation: Incarnation
    position: Lsn


class ReadLane(Effect, frozen=True):
    """Read owed messages behind `after`, then the log's position; None reads the record of the lane only."""

    lane: Lane
    after: EmissionNumber | None
    limit: int


class LaneRead(Result, frozen=True):
    """Messages in order, the first with number `after` + 1."""

    standing: Standing
    position: Lsn
    incarnation: Incarnation
    """Of the newest sender: whoever reads another one than its own has been replaced."""
    record: LaneRecord
    values: Sequence[bytes]


class RecordIntent(Effect, frozen=True):
    """R3: say durably that numbers up to `number` may have been sent, and up to `acknowledged` have
    arrived.
    """

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    acknowledged: EmissionNumber
    number: EmissionNumber


class RecordAcknowledged(Effect, frozen=True):
    """Say that the receiver has everything up to `number`."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    number: EmissionNumber


class RecordDoubts(Effect, frozen=True):
    """R3: list the numbers that may or may not have arrived; listing one again changes nothing."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    first: EmissionNumber
    last: EmissionNumber


class SettleDoubts(Effect, frozen=True):
    """R3, an operator's decision: everything up to `received` has arrived, the rest of the doubts has not.

    Refused unless the doubts were listed by the sender that is at work now: that one waits for the answer
    and has not sent anything. A number that a sender merely intends at this moment is not a doubt.
    """

    lane: Lane
    received: EmissionNumber


class ClaimAtReceiver(Effect, frozen=True):
    """Tell the receiver who sends from now on; the answer is a `Welcome`, or `Superseded`."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation


class SendEmissions(Effect, frozen=True):
    """Send a batch; numbers up to `doubtful_until` are flagged as possible repeats."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    first: EmissionNumber
    values: Sequence[bytes]
    doubtful_until: EmissionNumber
    release: Release
    """Why they may leave: evidence for the log."""

    @property
    def last(self) -> EmissionNumber:
        """The number of the last message."""
        return EmissionNumber(self.first + len(self.values) - 1)


class Accepted(Result, frozen=True):
    """The receiver has everything up to `last`."""

    last: EmissionNumber


class Superseded(Result, frozen=True):
    """The receiver has met a newer sender."""

    epoch: Epoch


class OutOfOrder(Result, frozen=True):
    """The receiver lacks a number before the first one sent; it has everything up to `last`."""

    last: EmissionNumber


class Conflicting(Result, frozen=True):
    """The receiver has the number with other bytes."""

    number: EmissionNumber


# The bad day.


class ObserveSite(Effect, frozen=True):
    """Look at a site's database."""

    site: SiteName


class SiteObserved(Result, frozen=True):
    """Where the database stands, and how much of the log it holds."""

    standing: Standing
    flushed: Lsn


class FenceSite(Effect, frozen=True):
    """Stop a site from outside: power, routes, credentials."""

    site: SiteName


class Promote(Effect, frozen=True):
    """Make a site's standby database a primary; harmless when it is one."""

    site: SiteName


class StopWaiting(Effect, frozen=True):
    """Let commits of a site's database return without a standby; those that wait now return and become
    visible.
    """

    site: SiteName


class OpenEpoch(Effect, frozen=True):
    """Write the new epoch with the cuts, if the current one is still `expected`; hand every head over to
    it.
    """

    site: SiteName
    expected: Epoch
    epoch: Epoch
    durability: Durability
    cause: str
    operator: str


class ChangeEpoch(Effect, frozen=True):
    """Change phase or durability of the current epoch, if it is still `epoch`."""

    site: SiteName
    epoch: Epoch
    phase: Phase | None = None
    durability: Durability | None = None


class StoreStart(Effect, frozen=True):
    """Say where a stage begins to read in this epoch."""

    site: SiteName
    stage: StageName
    partition: PartitionNumber
    epoch: Epoch
    hint: Hint


class ReadJournal(Effect, frozen=True):
    """Read segments of the order journal with the values of their records, behind a segment."""

    stage: StageName
    partition: PartitionNumber
    after: SegmentNumber
    limit: int


class FindPlace(Effect, frozen=True):
    """Read the journal behind the record (producer, serial); from its beginning when serial is 0."""

    stage: StageName
    partition: PartitionNumber
    producer: ProducerNumber
    serial: Serial
    limit: int


class JournalRead(Result, frozen=True):
    """Segments with their records' values; `first_position` is that of the first value."""

    standing: Standing
    head: Head
    segments: Sequence[Segment]
    values: Sequence[Sequence[bytes]]
    first_position: Position


class RecordStep(Effect, frozen=True):
    """Remember, at a site, that a step of a takeover is done: in a file until the epoch exists, then in the
    database.
    """

    site: SiteName
    epoch: Epoch
    step: int


class ObserveDrained(Effect, frozen=True):
    """Is everything submitted also applied, and everything owed acknowledged?"""

    site: SiteName


class Drained(Result, frozen=True):
    """What is left; `doubts` are R3 numbers that nobody has settled."""

    instructions: int
    emissions: int
    doubts: int


class ShutDown(Effect, frozen=True):
    """Stop a site's primary cleanly: the standby then has everything, its shutdown checkpoint included."""

    site: SiteName


class KeepTail(Effect, frozen=True):
    """Keep what only this site's database has, for audit; `Done.position` says up to where it was kept."""

    site: SiteName
    source: SiteName


class CopyDatabase(Effect, frozen=True):
    """Stop a site's database and replace it by a fresh copy of the other one's, as its standby.

    Refused if, once stopped, it is found in another epoch than the expected one (somebody took over there
    meanwhile) or with more in its log than was kept. `replaced` is None when it does not answer at all.
    """

    site: SiteName
    source: SiteName
    replaced: tuple[Epoch, Lsn] | None


class RecordRejoined(Effect, frozen=True):
    """Say, in the active database, that a site came back in this epoch; its topics start anew."""

    site: SiteName
    rejoined: SiteName
    epoch: Epoch
