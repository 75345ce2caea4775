"""An event in plain words, as a line of the short story that a witness is."""

from __future__ import annotations

from typing import assert_never

from zerotail.core.verdict import Witness
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
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
)


def witness(event: AnyEvent) -> Witness:
    """Where the event stands, and what it says."""
    return Witness(time=event.time, recorder=event.recorder, sequence=event.sequence, says=tell(event))


def tell(event: AnyEvent) -> str:
    """One line about an event."""
    match event:
        case SubmitInvoked(id=i, producer=p, partition=n, digest=d):
            return f"client submits {i} to {p}, partition {n}, content {_short(d)}"
        case SubmitAccepted(id=i, serial=s):
            return f"client is told that {i} is accepted" + (f" as serial {s}" if s is not None else "")
        case SubmitFailed(id=i):
            return f"client is told that {i} is refused"
        case SubmitUnknown(id=i, reason=r):
            return f"client learns nothing about {i}" + (f": {r}" if r else "")
        case Released() | ChannelClaimed() | EmissionAttempted() | DoubtListed():
            return _tell_sending(event)
        case EpochOpened() | ModeChanged() | ReplicationChanged():
            return _tell_lineage(event)
        case FinalSite() | FinalInstruction() | FinalSegment() | FinalState() | DivergentSegment():
            return _tell_end(event)
        case MirrorSource(mirror=m, partition=n, offset=o, digest=d):
            return f"source of {m}, partition {n}, offset {o}: content {_short(d)}"
        case MirrorCopy(mirror=m, partition=n, offset=o, source_offset=s, digest=d):
            return f"copy of {m}, partition {n}, offset {o}, says it is {s}: content {_short(d)}"
        case _:
            return _tell_surroundings(event)


def _tell_sending(event: Released | ChannelClaimed | EmissionAttempted | DoubtListed) -> str:
    sender = f"epoch {event.epoch}.{event.incarnation}"
    match event:
        case Released(by="exposure"):
            return f"{event.site}, {sender}, releases {event.channel} through {event.through} by exposure"
        case Released():
            return (
                f"{event.site}, {sender}, timeline {event.timeline}, releases {event.channel} through "
                f"{event.through}: wants {event.lsn_wanted}; the other site has flushed "
                f"{event.other_lsn_flushed}, timeline {event.other_timeline}, epoch {event.other_epoch}"
                + ("" if event.other_in_recovery else ", and is not in recovery")
            )
        case ChannelClaimed():
            return f"{event.site}, {sender}, claims {event.channel}: {event.answer}"
        case EmissionAttempted():
            return (
                f"{event.site}, {sender}, sends {event.channel} number {event.number} of partition "
                f"{event.partition}, content {_short(event.digest)}: {event.answer}"
            )
        case DoubtListed():
            return f"{event.channel} number {event.number} is listed as a doubt of {sender}"
    assert_never(event)


def _tell_lineage(event: EpochOpened | ModeChanged | ReplicationChanged) -> str:
    match event:
        case EpochOpened():
            cuts = ", ".join(f"{cut.stage}/{cut.partition} at segment {cut.segment}" for cut in event.cuts)
            by = " by an operator's record" if event.operator else ""
            return f"{event.site} opens epoch {event.epoch}, {event.mode}{by}, after {event.cause}" + (
                f"; cuts {cuts}" if cuts else ""
            )
        case ModeChanged():
            by = " by an operator's record" if event.operator else ""
            return f"{event.site} sets epoch {event.epoch} to {event.mode}{by}"
        case ReplicationChanged(in_force=True):
            return f"replication from {event.site} is in force"
        case ReplicationChanged():
            return f"replication from {event.site} is away; sent so far: {event.lsn_sent}"
    assert_never(event)


def _tell_end(
    event: FinalSite | FinalInstruction | FinalSegment | FinalState | DivergentSegment,
) -> str:
    match event:
        case FinalSite():
            return f"{event.site} ends {event.role}, with epochs {', '.join(map(str, event.epochs)) or 'none'}"
        case FinalInstruction():
            return (
                f"row at {event.site}: {event.producer}, partition {event.partition}, serial {event.serial} "
                f"is {event.id}, content {_short(event.digest)}"
            )
        case FinalSegment():
            runs = ", ".join(f"{run.producer} {run.first_serial}×{run.count}" for run in event.runs[:4])
            more = ", …" if len(event.runs) > 4 else ""
            return (
                f"journal at {event.site}: {event.stage}, partition {event.partition}, segment "
                f"{event.segment}, epoch {event.epoch}, from position {event.first_position}: {runs}{more}; "
                f"{len(event.emissions)} emissions, chain {_short(event.chain)}"
            )
        case FinalState():
            return (
                f"state at {event.site}, {event.source}: {event.stage}, partition {event.partition}, "
                f"behind segment {event.segment}: {_short(event.digest)}"
            )
        case DivergentSegment():
            return (
                f"{event.found} copy of {event.site}: {event.stage}, partition {event.partition}, "
                f"segment {event.segment}, epoch {event.epoch}, chain {_short(event.chain)}"
            )
    assert_never(event)


def _tell_surroundings(
    event: StageDeclared
    | ChannelDeclared
    | PoisonDecided
    | ProcessStarted
    | ProcessEnded
    | FaultBegan
    | FaultEnded
    | StateReached
    | LimitBegan
    | LimitReached
    | Measured,
) -> str:
    match event:
        case StageDeclared():
            return f"stage {event.stage} takes {', '.join(event.producers)}"
        case ChannelDeclared():
            return f"channel {event.channel} of {event.stage} has a receiver of class {event.receiver}"
        case PoisonDecided():
            return f"operator decides to {event.decision} record {event.serial} of {event.producer}"
        case ProcessStarted():
            return f"{event.process} starts at {event.site}"
        case ProcessEnded():
            return f"{event.process} ends with exit code {event.exit_code}: {event.reason or 'no reason given'}"
        case FaultBegan():
            return f"fault {event.fault}: {event.action} {event.target}; seen: {event.evidence or 'nothing'}"
        case FaultEnded():
            return f"fault {event.fault} is healed"
        case StateReached():
            return f"reached: {event.state}"
        case LimitBegan():
            return f"{event.what} begins, limit {event.limit}"
        case LimitReached():
            return f"{event.what} is reached"
        case Measured():
            return f"{event.what} measures {event.value}, limit {event.limit}"
    assert_never(event)


def _short(digest: str) -> str:
    return digest[:12] or "unknown"
