"""The history of a drill: what each witness saw, put into files of their own for the checker.

    run        what it consists of, faults and when they were taken back
    business   what clients asked and were told
    receiver   every claim and every message with the answer, from the receiver's own record
    databases  epochs as they were opened, and when they went back behind the gate; numbers in doubt
    sender-…   releases, written by the senders themselves while they ran (`sender.py`)
    reader     both sites as they were found in the end

All times are the machine's monotonic clock in nanoseconds; witnesses that know the time of day are converted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from zerotail.core.epoch import EpochRow
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    PartitionNumber,
    ProducerName,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
)
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.chained import ChainedBytes
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
    Cut,
    DoubtListed,
    EmissionAttempted,
    EpochOpened,
    FaultBegan,
    FaultEnded,
    FinalSite,
    ModeChanged,
    PoisonDecided,
    StageDeclared,
)
from zerotail.drill.reading import SiteRead, divergent, read_producers, read_site
from zerotail.drill.rehearsal import CHANNEL, STAGE, Rehearsal
from zerotail.errors import Unavailable
from zerotail.lab.receiver.protocol import Attempt, ClaimAttempt, MessageAttempt, ReceiverClass, Verdict
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.lineage import read_standing
from zerotail.private import open_file

_PATIENCE_SECONDS = 60.0
_CATCH_UP_SECONDS = 20.0
_OPENED = b"select epoch, extract(epoch from opened_at)::float8 from zerotail.epoch"
_DOUBTS = b"select channel, partition, target, number, epoch, incarnation from zerotail.doubt order by channel, number"
_DECIDED = b"""
select stage, partition, name, serial, digest, decision, extract(epoch from decided_at)::float8
  from zerotail.poison join zerotail.producer using (producer) where decision <> ''
"""
_REPLAYED = "select coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint"
_WRITTEN = "select (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint"
_ANSWERS: dict[Verdict, Literal["accepted", "repeat", "older-epoch", "gap"]] = {
    Verdict.ACCEPTED: "accepted",
    Verdict.REPEAT_DROPPED: "repeat",
    Verdict.GAP_REFUSED: "gap",
    Verdict.OLDER_EPOCH_REFUSED: "older-epoch",
    Verdict.OTHER_INSTALLATION_REFUSED: "older-epoch",
}
"""What stood in a batch behind a refused message was not judged: it is no attempt of its own."""
_encoder = msgspec.json.Encoder()


class Clock:
    """Converts the time of day into the machine's monotonic clock: one offset for the whole run."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def at(self, unix_seconds: float) -> int:
        """The moment in monotonic nanoseconds."""
        return round(unix_seconds * 1e9) - self._offset


def write_history(rehearsal: Rehearsal, attempts: Iterable[Attempt]) -> ChainedBytes:
    """Write everything that is known when the flow is drained; what the chains of its segments cover."""
    clock = Clock()
    with session(rehearsal.database, Deadline.after(_PATIENCE_SECONDS)) as active:
        names = read_producers(active)
        databases = [*_epochs(rehearsal, active, clock), *_doubts(active), *_decisions(active, clock)]
        read = read_site(active, rehearsal.configuration(rehearsal.active), rehearsal.active, "active")
        other = _other_site(rehearsal, active, read)
    _write(rehearsal.history, "run", [*_declared(rehearsal, names), *_faults(rehearsal, clock)])
    _write(rehearsal.history, "business", rehearsal.business.noted)
    _write(rehearsal.history, "receiver", (one for attempt in attempts for one in _attempt(attempt, clock)))
    _write(rehearsal.history, "databases", databases)
    _write(rehearsal.history, "reader", [*read.events, *other.events])
    return ChainedBytes({name: number for number, name in names.items()}, read.decided | other.decided)


def _write(folder: Path, recorder: str, events: Iterable[AnyEvent]) -> None:
    """One recorder's file; what has no time of its own is of now."""
    now = time.monotonic_ns()
    timed = [event if event.time else msgspec.structs.replace(event, time=now) for event in events]
    timed.sort(key=lambda event: event.time)
    with open_file(folder / f"{recorder}.jsonl", "wb") as file:
        for sequence, event in enumerate(timed, start=1):
            file.write(_encoder.encode(msgspec.structs.replace(event, recorder=recorder, sequence=sequence)) + b"\n")


def _declared(rehearsal: Rehearsal, names: dict[ProducerNumber, ProducerName]) -> Iterator[AnyEvent]:
    channel = rehearsal.configuration(rehearsal.active).channels[ChannelName(CHANNEL)]
    receiver: Any = rehearsal.layout.receiver_class
    window = min(channel.batch, channel.doubt_window) if receiver == ReceiverClass.R3 else None  # type: ignore[union-attr]
    yield StageDeclared(time=1, stage=StageName(STAGE), producers=tuple(names.values()))
    yield ChannelDeclared(
        time=1, channel=ChannelName(CHANNEL), stage=StageName(STAGE), receiver=receiver, window=window
    )


def _faults(rehearsal: Rehearsal, clock: Clock) -> Iterator[AnyEvent]:
    for number, fault in enumerate((*rehearsal.earlier_faults, *rehearsal.faults), start=1):
        name = f"{fault.report.fault} {number}"
        yield FaultBegan(
            time=clock.at(fault.at),
            fault=name,
            action=fault.report.fault,
            target=fault.report.target,
            bit=fault.report.bit,
            evidence="; ".join(fault.report.evidence),
        )
        if fault.ended_at is not None:
            yield FaultEnded(time=clock.at(fault.ended_at), fault=name)


def _attempt(attempt: Attempt, clock: Clock) -> Iterator[AnyEvent]:
    answer = _ANSWERS.get(attempt.verdict)
    if attempt.channel != CHANNEL or answer is None:
        return
    common: dict[str, Any] = {
        "time": clock.at(attempt.unix_seconds),
        "channel": ChannelName(attempt.channel),
        "partition": PartitionNumber(attempt.partition),
        "epoch": Epoch(attempt.epoch),
        "incarnation": Incarnation(attempt.incarnation),
        "site": SiteName(attempt.site),
        "answer": answer,
    }
    match attempt:
        case MessageAttempt():
            yield EmissionAttempted(number=EmissionNumber(attempt.number), digest=attempt.digest, **common)
        case ClaimAttempt():
            yield ChannelClaimed(**common)


def _epochs(rehearsal: Rehearsal, active: Connection, clock: Clock) -> Iterator[AnyEvent]:
    opened_at: dict[int, float] = dict(active.execute(_OPENED).fetchall())
    for row in read_standing(active).lineage.rows:
        # The row says what holds now. An epoch that follows a change of roles begins exposed, always.
        exposed = row.cause not in ("start", "timeline")
        yield _opened(row, clock.at(opened_at[row.epoch]), exposed=exposed)
        if exposed and row.durability.value == "gated" and row.epoch in rehearsal.gated_at:
            seen_at, behind = rehearsal.gated_at[row.epoch]
            yield ModeChanged(time=clock.at(seen_at), epoch=row.epoch, site=row.site, mode="gated", lsn=behind)


def _opened(row: EpochRow, at: int, *, exposed: bool) -> EpochOpened:
    cause: Any = row.cause
    return EpochOpened(
        time=at,
        epoch=row.epoch,
        site=row.site,
        mode="exposed" if exposed else "gated",
        cause=cause,
        timeline=row.timeline,
        operator=exposed and row.cause != "takeover",
        cuts=tuple(
            Cut(cut.stage, cut.partition, cut.segment, cut.next_position, cut.chain.hex()) for cut in row.cut.heads
        ),
    )


def _doubts(active: Connection) -> Iterator[DoubtListed]:
    for channel, partition, target, number, epoch, incarnation in active.execute(_DOUBTS).fetchall():
        yield DoubtListed(
            time=1,
            channel=ChannelName(channel),
            partition=PartitionNumber(partition),
            target_partition=PartitionNumber(target),
            number=EmissionNumber(number),
            epoch=Epoch(epoch),
            incarnation=Incarnation(incarnation),
        )


def _decisions(active: Connection, clock: Clock) -> Iterator[PoisonDecided]:
    for stage, partition, producer, serial, digest, decision, at in active.execute(_DECIDED).fetchall():
        yield PoisonDecided(
            time=clock.at(at),
            stage=StageName(stage),
            producer=ProducerName(producer),
            partition=PartitionNumber(partition),
            serial=Serial(serial),
            digest=bytes(digest).hex(),
            decision=decision,
        )


def _other_site(rehearsal: Rehearsal, active: Connection, ours: SiteRead) -> SiteRead:
    """The site that is not active: a standby that has caught up, a deposed primary, or lost."""
    site = rehearsal.standby
    try:
        with session(rehearsal.dsn(site), Deadline.after(3)) as other:
            standing = read_standing(other)
            if standing.timeline is not None:
                theirs = read_site(other, rehearsal.configuration(site), site, "deposed")
                return replace(theirs, events=[*theirs.events, *divergent(theirs.segments, ours.segments)])
            (wanted,) = one_row(active, _WRITTEN)
            wait_until(
                f"{site} has caught up",
                lambda: int(one_row(other, _REPLAYED)[0]) >= wanted,
                Deadline.after(_CATCH_UP_SECONDS),
            )
            return read_site(other, rehearsal.configuration(site), site, "standby")
    except Unavailable:
        return SiteRead([FinalSite(site=SiteName(site), role="lost")], [], {})
