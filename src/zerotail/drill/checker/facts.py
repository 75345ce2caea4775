"""The events of a history, sorted into what the rules ask about.

One pass puts each event into the list of its kind; kinds whose order matters to each other (submissions,
sending) share one. Everything else is computed when the first rule asks for it, and once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeAlias

from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    PartitionNumber,
    ProducerName,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
)
from zerotail.drill.checker.counting import Counting
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
    Digest,
    DivergentSegment,
    DoubtListed,
    EmissionAttempted,
    EpochOpened,
    FaultBegan,
    FaultEnded,
    FinalInstruction,
    FinalSegment,
    FinalSite,
    FinalState,
    LimitBegan,
    LimitReached,
    Measured,
    MirrorCopy,
    MirrorSource,
    ModeChanged,
    PoisonDecided,
    ProcessEnded,
    ProcessStarted,
    Released,
    ReplicationChanged,
    StageDeclared,
    StateReached,
    SubmitAccepted,
    SubmitFailed,
    SubmitInvoked,
    SubmitUnknown,
    hop_producer,
)

Stream: TypeAlias = tuple[ChannelName, PartitionNumber, PartitionNumber]
"""Channel, source partition, target partition: emissions are numbered 1, 2, 3, … in each."""
Place: TypeAlias = tuple[StageName, PartitionNumber]
Source: TypeAlias = tuple[ProducerName, PartitionNumber]
Owed: TypeAlias = "FinalInstruction | FinalSegment"
"""Where a record that a stage has to take is written down: its row, or the upstream segment that emits it."""
Submission: TypeAlias = SubmitInvoked | SubmitAccepted | SubmitFailed | SubmitUnknown
Sending: TypeAlias = EpochOpened | ModeChanged | ReplicationChanged | Released | ChannelClaimed | EmissionAttempted


class Facts:
    """All events by kind, and what follows from them."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.submissions: list[Submission] = []
        self.sending: list[Sending] = []
        self.stages: list[StageDeclared] = []
        self.channels: list[ChannelDeclared] = []
        self.doubts: list[DoubtListed] = []
        self.decisions: list[PoisonDecided] = []
        self.processes: list[ProcessStarted | ProcessEnded] = []
        self.faults: list[FaultBegan | FaultEnded] = []
        self.states_reached: list[StateReached] = []
        self.limits: list[LimitBegan | LimitReached | Measured] = []
        self.sites: list[FinalSite] = []
        self.instructions: list[FinalInstruction] = []
        self.segments: list[FinalSegment] = []
        self.states: list[FinalState] = []
        self.divergent: list[DivergentSegment] = []
        self.mirrored: list[MirrorSource | MirrorCopy] = []
        lists: dict[type, list[AnyEvent]] = {
            kind: room  # type: ignore[misc]
            for kinds, room in (
                ((SubmitInvoked, SubmitAccepted, SubmitFailed, SubmitUnknown), self.submissions),
                ((EpochOpened, ModeChanged, ReplicationChanged), self.sending),
                ((Released, ChannelClaimed, EmissionAttempted), self.sending),
                ((StageDeclared,), self.stages),
                ((ChannelDeclared,), self.channels),
                ((DoubtListed,), self.doubts),
                ((PoisonDecided,), self.decisions),
                ((ProcessStarted, ProcessEnded), self.processes),
                ((FaultBegan, FaultEnded), self.faults),
                ((StateReached,), self.states_reached),
                ((LimitBegan, LimitReached, Measured), self.limits),
                ((FinalSite,), self.sites),
                ((FinalInstruction,), self.instructions),
                ((FinalSegment,), self.segments),
                ((FinalState,), self.states),
                ((DivergentSegment,), self.divergent),
                ((MirrorSource, MirrorCopy), self.mirrored),
            )
            for kind in kinds
        }
        for event in events:
            lists[type(event)].append(event)

    # What the run consists of.

    @cached_property
    def channel(self) -> dict[ChannelName, ChannelDeclared]:
        """Channels by name."""
        return {declared.channel: declared for declared in self.channels}

    @cached_property
    def takers(self) -> dict[ProducerName, list[StageName]]:
        """The stages that take each producer."""
        takers: dict[ProducerName, list[StageName]] = defaultdict(list)
        for declared in self.stages:
            for producer in declared.producers:
                takers[producer].append(declared.stage)
        return takers

    # The final journal.

    @cached_property
    def active_sites(self) -> list[FinalSite]:
        """The sites that ended active; one, if all is well."""
        return list({site.site: site for site in self.sites if site.role == "active"}.values())

    @cached_property
    def active(self) -> FinalSite | None:
        """The site whose journal is the final one; None if none says so, or if more than one does."""
        return self.active_sites[0] if len(self.active_sites) == 1 else None

    @cached_property
    def journals(self) -> dict[SiteName, dict[Place, list[FinalSegment]]]:
        """Per site and place the segments, by segment number."""
        journals: dict[SiteName, dict[Place, list[FinalSegment]]] = defaultdict(lambda: defaultdict(list))
        for segment in self.segments:
            journals[segment.site][segment.stage, segment.partition].append(segment)
        for places in journals.values():
            for segments in places.values():
                segments.sort(key=_by_number)
        return journals

    @cached_property
    def journal(self) -> dict[Place, list[FinalSegment]]:
        """The final journal."""
        return self.journals.get(self.active.site, {}) if self.active else {}

    @cached_property
    def rows(self) -> list[FinalInstruction]:
        """The instruction rows of the active site."""
        site = self.active.site if self.active else None
        return [row for row in self.instructions if row.site == site]

    @cached_property
    def row_of(self) -> dict[str, FinalInstruction]:
        """The row of each submission id."""
        return {row.id: row for row in self.rows}

    @cached_property
    def taken(self) -> dict[tuple[StageName, PartitionNumber, ProducerName], Counting[FinalSegment]]:
        """Which serials of each producer the final journal holds."""
        taken: dict[tuple[StageName, PartitionNumber, ProducerName], Counting[FinalSegment]] = defaultdict(Counting)
        for (stage, partition), segments in self.journal.items():
            for segment in segments:
                for run in segment.runs:
                    taken[stage, partition, run.producer].take_run(run.first_serial, run.count, segment)
        return taken

    # What is owed: to the outside, and to the stages.

    @cached_property
    def reference(self) -> dict[Stream, dict[EmissionNumber, tuple[Digest, FinalSegment]]]:
        """The reference emissions of the final journal."""
        reference: dict[Stream, dict[EmissionNumber, tuple[Digest, FinalSegment]]] = defaultdict(dict)
        for (_, partition), segments in self.journal.items():
            for segment in segments:
                for emission in segment.emissions:
                    stream = (emission.channel, partition, emission.target_partition)
                    reference[stream][emission.number] = (emission.digest, segment)
        return reference

    @cached_property
    def owed(self) -> dict[Source, dict[Serial, tuple[Digest, Owed]]]:
        """Per producer and partition, the records that the stages behind it have to take."""
        owed: dict[Source, dict[Serial, tuple[Digest, Owed]]] = defaultdict(dict)
        for row in self.rows:
            owed[row.producer, row.partition][row.serial] = (row.digest, row)
        for (channel, partition, target), emissions in self.reference.items():
            declared = self.channel.get(channel)
            if declared is not None and declared.receiver == "stage":
                hop = owed[hop_producer(declared.stage, partition), target]
                for number, (digest, segment) in emissions.items():
                    hop[Serial(number)] = (digest, segment)
        return owed

    # Epochs, and what the receiver saw.

    @cached_property
    def opened(self) -> list[EpochOpened]:
        """The epochs, as they were opened."""
        return [event for event in self.sending if type(event) is EpochOpened]

    @cached_property
    def lineage(self) -> frozenset[Epoch]:
        """The epochs that are rows at the active site in the end."""
        return frozenset(self.active.epochs) if self.active else frozenset()

    @cached_property
    def attempts(self) -> list[EmissionAttempted]:
        """Everything that arrived."""
        return [event for event in self.sending if type(event) is EmissionAttempted]

    @cached_property
    def accepted(self) -> dict[Stream, list[EmissionAttempted]]:
        """What was accepted, per stream, in the receiver's order."""
        accepted: dict[Stream, list[EmissionAttempted]] = defaultdict(list)
        for attempt in self.attempts:
            if attempt.answer == "accepted":
                accepted[attempt.channel, attempt.partition, attempt.target_partition].append(attempt)
        return accepted

    @cached_property
    def received(self) -> dict[Stream, Counting[EmissionAttempted]]:
        """Which numbers of each stream were accepted."""
        received: dict[Stream, Counting[EmissionAttempted]] = defaultdict(Counting)
        for stream, attempts in self.accepted.items():
            take = received[stream].take
            for attempt in attempts:
                take(attempt.number, attempt)
        return received

    @cached_property
    def doubts_of(self) -> dict[Stream, dict[EmissionNumber, list[DoubtListed]]]:
        """Class R3: how often each number was listed as a doubt."""
        doubts: dict[Stream, dict[EmissionNumber, list[DoubtListed]]] = defaultdict(lambda: defaultdict(list))
        for doubt in self.doubts:
            declared = self.channel.get(doubt.channel)
            if declared is not None and declared.receiver == "R3":
                stream = (doubt.channel, doubt.partition, doubt.target_partition)
                doubts[stream][doubt.number].append(doubt)
        return doubts

    def listed(self, stream: Stream, number: int) -> Sequence[DoubtListed]:
        """The doubts that were listed for a number; empty for every class but R3."""
        if stream not in self.doubts_of:
            return ()
        return self.doubts_of[stream].get(EmissionNumber(number), ())


def _by_number(segment: FinalSegment) -> SegmentNumber:
    return segment.segment
