"""The history of a run, simulated or real: what each witness saw, one event after the other.

Every witness (a client, the receiver, an emitter, whoever injects faults, whoever reads both sites at the
end) is a *recorder*. The checker reads nothing else, so whatever a rule of `docs/verdicts.md` needs has its
event here, and nothing more. `recording.py` writes events to files and reads them back.

1. Events are merged by (time, recorder, sequence). `time` is the machine's monotonic clock in nanoseconds, or
   the step of a simulated run. A recorder numbers its events 1, 2, 3, …, so a lost line shows.
2. An outcome is `SubmitFailed` only when it certainly did not happen; any doubt is `SubmitUnknown`.
3. The receiver records every attempt with the answer it gave, durably, before it answers.
4. A sender records a release (`Released`) before it sends.
5. Digests and chain hashes are texts in hexadecimal; the checker compares them and never sees a payload.

A stage that feeds another stage is a producer there, one per source partition: see `hop_producer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec

from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    Offset,
    PartitionNumber,
    Position,
    ProducerName,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
)

Digest: TypeAlias = str
ReceiverClass: TypeAlias = Literal["R0", "R1", "R2", "R3", "stage"]
"""What the receiver of a channel can do; `stage` is one of our own stages, whose journal is the judge."""
Mode: TypeAlias = Literal["gated", "exposed"]
Rule: TypeAlias = str
"""The number of a rule in `docs/verdicts.md`: `S1` … `S19`, `L1` …, `N1` …."""


def hop_producer(stage: str, partition: int) -> ProducerName:
    """The name under which a partition of an upstream stage is a producer of the stage behind it."""
    return ProducerName(f"{stage}/{partition}")


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive positions filled by consecutive serials of one producer."""

    producer: ProducerName
    first_serial: Serial
    count: int


class Emission(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message owed on a channel; its source partition is that of the segment it stands in."""

    channel: ChannelName
    number: EmissionNumber
    digest: Digest
    target_partition: PartitionNumber = PartitionNumber(0)


class Cut(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a new epoch found of a stage and partition: the last surviving segment, and where to go on."""

    stage: StageName
    partition: PartitionNumber
    segment: SegmentNumber
    next_position: Position
    chain: Digest = ""


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=_kebab, omit_defaults=True, gc=False):
    """What all events have; a `HistoryWriter` fills in the three, a simulated run gives them itself."""

    time: int = 0
    recorder: str = ""
    sequence: int = 0


# What the run consists of; written once, at its start.


class StageDeclared(Event, frozen=True):
    """A stage, and every producer whose instructions or emissions it takes."""

    stage: StageName
    producers: tuple[ProducerName, ...]


class ChannelDeclared(Event, frozen=True):
    """A channel of a stage. `window`, class R3 only: how many doubts one crash of a sender may leave."""

    channel: ChannelName
    stage: StageName
    receiver: ReceiverClass
    target_stage: StageName = StageName("")
    window: int | None = None


# Clients.


class SubmitInvoked(Event, frozen=True):
    """A client asks for an instruction to be accepted. `serial` only where the business gives it."""

    id: str
    producer: ProducerName
    partition: PartitionNumber
    digest: Digest
    serial: Serial | None = None


class SubmitAccepted(Event, frozen=True):
    """The answer was yes: the row is behind the gate."""

    id: str
    serial: Serial | None = None


class SubmitFailed(Event, frozen=True):
    """The answer was no, and the row certainly does not exist because of this call."""

    id: str


class SubmitUnknown(Event, frozen=True):
    """No answer that could be believed: time-out, reset, cancelled wait, killed client."""

    id: str
    reason: str = ""


# Epochs, the gate, replication.


class EpochOpened(Event, frozen=True):
    """An epoch row was written. `operator`: a flag of an operator allowed it to be exposed.

    `cuts` has every stage and partition that has a segment; one that is not named begins at position 0.
    """

    epoch: Epoch
    site: SiteName
    mode: Mode
    cause: Literal["start", "takeover", "handover", "failback", "timeline", "exposure"]
    timeline: Timeline = Timeline(1)
    operator: bool = False
    cuts: tuple[Cut, ...] = ()


class ModeChanged(Event, frozen=True):
    """The epoch row changed its mode: back to gated, or exposed by an operator's record."""

    epoch: Epoch
    site: SiteName
    mode: Mode
    operator: bool = False
    lsn: Lsn = Lsn(0)
    """Behind the row in the log; 0 when nobody knows."""


class Released(Event, frozen=True):
    """A sender allows itself to send everything up to number `through`, and says because of what.

    By the gate: the `other_…` fields are what the other site said of itself in the one answer that was used.
    By exposure: the epoch row says so; there is no other site to ask. `lsn_wanted` is behind everything that was read
    together with that row.
    """

    site: SiteName
    epoch: Epoch
    incarnation: Incarnation
    channel: ChannelName
    partition: PartitionNumber
    through: EmissionNumber
    by: Literal["gate", "exposure"]
    target_partition: PartitionNumber = PartitionNumber(0)
    timeline: Timeline = Timeline(1)
    lsn_wanted: Lsn = Lsn(0)
    other_lsn_flushed: Lsn = Lsn(0)
    other_timeline: Timeline = Timeline(1)
    other_epoch: Epoch = Epoch(0)
    other_in_recovery: bool = True


class ReplicationChanged(Event, frozen=True):
    """Whether synchronous replication from `site` to the other one is in force, seen at the database.

    When it ends, `lsn_sent` is the last position that had been sent; None if nobody could tell.
    """

    site: SiteName
    in_force: bool
    lsn_sent: Lsn | None = None


# The receiver, the only judge of emissions.


class ChannelClaimed(Event, frozen=True):
    """A sender claims a channel at the receiver; partition None means all partitions of the channel."""

    channel: ChannelName
    epoch: Epoch
    incarnation: Incarnation
    site: SiteName
    answer: Literal["accepted", "older-epoch"]
    partition: PartitionNumber | None = None


class EmissionAttempted(Event, frozen=True):
    """A message arrived at the receiver, and what the receiver answered."""

    channel: ChannelName
    partition: PartitionNumber
    number: EmissionNumber
    digest: Digest
    epoch: Epoch
    incarnation: Incarnation
    site: SiteName
    answer: Literal["accepted", "repeat", "older-epoch", "gap"]
    target_partition: PartitionNumber = PartitionNumber(0)


class DoubtListed(Event, frozen=True):
    """Class R3: the sender of (epoch, incarnation) may or may not have sent this number."""

    channel: ChannelName
    partition: PartitionNumber
    number: EmissionNumber
    epoch: Epoch
    incarnation: Incarnation
    target_partition: PartitionNumber = PartitionNumber(0)


# Operators, processes, faults.


class PoisonDecided(Event, frozen=True):
    """An operator decided about a record that stopped its partition, bound to the record's digest."""

    stage: StageName
    producer: ProducerName
    partition: PartitionNumber
    serial: Serial
    digest: Digest
    decision: Literal["skip", "replace", "retry"]


class ProcessStarted(Event, frozen=True):
    """A process of ours began; an emitter also says with which claim."""

    process: str
    site: SiteName
    epoch: Epoch = Epoch(0)
    incarnation: Incarnation = Incarnation(0)


class ProcessEnded(Event, frozen=True):
    """A process of ours ended. `reason` is its own word (`fenced`, `done`), or `killed`."""

    process: str
    exit_code: int
    reason: str = ""


class FaultBegan(Event, frozen=True):
    """A fault was injected; `bit` says that its effect was seen, `evidence` what was seen."""

    fault: str
    action: str
    target: str
    bit: bool
    evidence: str = ""


class FaultEnded(Event, frozen=True):
    """The fault was healed. A destroyed site has no such event until another one takes its place."""

    fault: str


class StateReached(Event, frozen=True):
    """A rare state that the run was meant to reach, by name: `read back found the row`."""

    state: str


# Liveness.


class LimitBegan(Event, frozen=True):
    """From here on, `what` has `limit` units of time to happen; `rule` is the number of the liveness rule."""

    rule: Rule
    what: str
    limit: int


class LimitReached(Event, frozen=True):
    """`what` has happened."""

    rule: Rule
    what: str


class Measured(Event, frozen=True):
    """A figure that a liveness rule bounds: `value` must not exceed `limit`."""

    rule: Rule
    what: str
    value: float
    limit: float


# The end: everything healed, clients stopped, drained; then both sites are read.


class FinalSite(Event, frozen=True):
    """How a site ended. The journal of the one `active` site is the final journal.

    `standby`: attached and caught up. `deposed`: readable, not rejoined. `lost`: nothing to read. Written
    when the rest of the site has been read, so that a reading that was cut short is not taken for a loss.
    """

    site: SiteName
    role: Literal["active", "standby", "deposed", "lost"]
    epochs: tuple[Epoch, ...] = ()


class FinalInstruction(Event, frozen=True):
    """An instruction row at a site."""

    site: SiteName
    producer: ProducerName
    partition: PartitionNumber
    serial: Serial
    id: str
    digest: Digest


class FinalSegment(Event, frozen=True):
    """A segment of a site's order journal.

    `inputs` is the digest of each record, in order of position. `skipped` names the positions that an
    operator's decision left unapplied. `emissions` is what a one-pass reference run over this journal emits
    for this segment. `decided_at` and `version` are what the handler saw as its time and its code. `lsn` is a
    place in the log behind the segment's commit, 0 if unknown. `content`, `previous` and `chain` are as
    stored: the checker computes them again.
    """

    site: SiteName
    stage: StageName
    partition: PartitionNumber
    segment: SegmentNumber
    epoch: Epoch
    first_position: Position
    runs: tuple[Run, ...]
    inputs: tuple[Digest, ...]
    emissions: tuple[Emission, ...] = ()
    skipped: tuple[Position, ...] = ()
    decided_at: int = 0
    version: str = ""
    previous: Digest = ""
    content: Digest = ""
    chain: Digest = ""
    lsn: Lsn = Lsn(0)


class FinalState(Event, frozen=True):
    """The digest of a stage's state behind a segment: as stored at a site, or as found by a replay."""

    site: SiteName
    stage: StageName
    partition: PartitionNumber
    segment: SegmentNumber
    digest: Digest
    source: Literal["database", "replay"]


class DivergentSegment(Event, frozen=True):
    """A segment that only a deposed site had: as found there, or as kept for audit after the rejoin."""

    site: SiteName
    stage: StageName
    partition: PartitionNumber
    segment: SegmentNumber
    epoch: Epoch
    chain: Digest
    found: Literal["deposed", "audit"]
    emissions: tuple[Emission, ...] = ()


class MirrorSource(Event, frozen=True):
    """A record at the source of a mirror."""

    mirror: str
    partition: PartitionNumber
    offset: Offset
    digest: Digest


class MirrorCopy(Event, frozen=True):
    """A record at the target of a mirror, with the source coordinate it claims to be a copy of."""

    mirror: str
    partition: PartitionNumber
    offset: Offset
    source_offset: Offset
    digest: Digest


AnyEvent: TypeAlias = (
    StageDeclared
    | ChannelDeclared
    | SubmitInvoked
    | SubmitAccepted
    | SubmitFailed
    | SubmitUnknown
    | EpochOpened
    | ModeChanged
    | Released
    | ReplicationChanged
    | ChannelClaimed
    | EmissionAttempted
    | DoubtListed
    | PoisonDecided
    | ProcessStarted
    | ProcessEnded
    | FaultBegan
    | FaultEnded
    | StateReached
    | LimitBegan
    | LimitReached
    | Measured
    | FinalSite
    | FinalInstruction
    | FinalSegment
    | FinalState
    | DivergentSegment
    | MirrorSource
    | MirrorCopy
)


_merge_key = attrgetter("time", "recorder", "sequence")


def merged(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """The events of all recorders in the one order that every reader uses."""
    return sorted(events, key=_merge_key)
