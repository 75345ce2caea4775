"""A site read at the end of a drill: its rows, its journal, and what a reference run over the journal emits.

The reference run is the handler over the journal once more, in one pass and sending nothing: what it emits is what the
outside should have, whatever the outbox says. Digests are those of records, so that a row, its record and its place in
the journal can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from zerotail.config import Configuration
from zerotail.core.emission import Owed
from zerotail.core.head import Segment, first_head
from zerotail.core.identity import (
    EmissionNumber,
    PartitionNumber,
    Position,
    ProducerName,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
)
from zerotail.core.poison import Decided, Remedy
from zerotail.core.record import digest_of
from zerotail.drill.chained import SegmentName, decisions_of
from zerotail.drill.history import (
    AnyEvent,
    DivergentSegment,
    Emission,
    FinalInstruction,
    FinalSegment,
    FinalSite,
    FinalState,
    Run,
)
from zerotail.failover.replay import Replay
from zerotail.flow.stage import Stage
from zerotail.operate.pipeline import read_pipeline, transforms_of
from zerotail.ports import JournalRead, ReadJournal
from zerotail.postgres.connection import Connection, snapshot
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.reading import Source, Transforms, find_sources, read_journal

_SEGMENTS_AT_ONCE = 200
_ROWS = b"select producer, partition, serial, id, value from zerotail.instruction order by producer, partition, serial"
_STATE = b"select key, value from zerotail.state where stage = %s and partition = %s order by key"
Names = Mapping[ProducerNumber, ProducerName]


@dataclass(frozen=True, slots=True)
class SiteRead:
    """What a site holds in the end."""

    events: list[AnyEvent]
    segments: list[FinalSegment]
    decided: dict[SegmentName, Sequence[Decided]]


def read_producers(connection: Connection) -> dict[ProducerNumber, ProducerName]:
    """What the numbers of producers mean."""
    rows = connection.execute(b"select producer, name from zerotail.producer").fetchall()
    return {ProducerNumber(number): ProducerName(name) for number, name in rows}


def read_site(connection: Connection, configuration: Configuration, site: str, role: str) -> SiteRead:
    """Everything of one site, of one moment."""
    transforms = transforms_of(configuration)
    with snapshot(connection):
        names = read_producers(connection)
        pipeline = read_pipeline(configuration, connection)
        epochs = tuple(row.epoch for row in read_standing(connection).lineage.rows)
        sources = {
            (producer, stage.partition): source
            for stage in pipeline.stages
            for producer, source in find_sources(connection, stage.name, stage.partition, transforms).items()
        }
        events: list[AnyEvent] = list(_rows(connection, site, names, sources))
        segments: list[FinalSegment] = []
        decided: dict[SegmentName, Sequence[Decided]] = {}
        for stage in pipeline.stages:
            replay = Replay(stage, first_head(epochs[0], pipeline.producers[stage.name]))
            for taken, owed in _journal(connection, stage, replay, transforms):
                segments.append(_segment(site, stage, taken, owed, names))
                decided |= decisions_of(SiteName(site), stage.name, stage.partition, [taken])
            kept = connection.execute(_STATE, (stage.name, stage.partition), binary=True).fetchall()
            events += [
                _state(site, replay, "database", dict(kept)),
                _state(site, replay, "replay", replay.state),
            ]
    events += segments
    events.append(FinalSite(site=SiteName(site), role=role, epochs=epochs))  # type: ignore[arg-type]
    return SiteRead(events, segments, decided)


def divergent(theirs: list[FinalSegment], ours: list[FinalSegment]) -> Iterator[DivergentSegment]:
    """What only a deposed site has."""
    known = {(one.stage, one.partition, one.segment, one.chain) for one in ours}
    for one in theirs:
        if (one.stage, one.partition, one.segment, one.chain) not in known:
            yield DivergentSegment(
                site=one.site,
                stage=one.stage,
                partition=one.partition,
                segment=one.segment,
                epoch=one.epoch,
                chain=one.chain,
                found="deposed",
                emissions=one.emissions,
            )


def _rows(
    connection: Connection, site: str, names: Names, sources: Mapping[tuple[ProducerNumber, PartitionNumber], Source]
) -> Iterator[FinalInstruction]:
    for number, partition, serial, identifier, value in connection.execute(_ROWS, binary=True):
        name = names[ProducerNumber(number)]
        source = sources.get((ProducerNumber(number), PartitionNumber(partition)), Source())
        yield FinalInstruction(
            site=SiteName(site),
            producer=name,
            partition=PartitionNumber(partition),
            serial=Serial(serial),
            id=identifier,
            digest=digest_of(source.value_of(serial, value)).hex(),
        )


def _journal(
    connection: Connection, stage: Stage, replay: Replay, transforms: Transforms
) -> Iterator[tuple[Segment, Owed]]:
    after = SegmentNumber(0)
    while True:
        read = read_journal(connection, ReadJournal(stage.name, stage.partition, after, _SEGMENTS_AT_ONCE), transforms)
        if not isinstance(read, JournalRead) or not read.segments:
            return
        for segment, values in zip(read.segments, read.values, strict=True):
            yield segment, replay.apply(segment, values)
        after = read.segments[-1].segment


def _segment(site: str, stage: Stage, segment: Segment, owed: Owed, names: Names) -> FinalSegment:
    return FinalSegment(
        site=SiteName(site),
        stage=stage.name,
        partition=stage.partition,
        segment=segment.segment,
        epoch=segment.epoch,
        first_position=segment.first_position,
        runs=tuple(Run(names[producer], first, count) for producer, first, count in segment.runs),
        inputs=tuple(digest.hex() for digest in segment.digests),
        emissions=tuple(
            Emission(channel, EmissionNumber(number), sha256(value).hexdigest(), target)
            for (channel, target), (first, emitted) in owed.items()
            for number, value in enumerate(emitted, first)
        ),
        skipped=tuple(
            Position(segment.first_position + place)
            for place, decision in segment.decided
            if decision.remedy is Remedy.SKIP
        ),
        decided_at=segment.decided_at,
        version=segment.version,
        previous=segment.previous.hex(),
        content=segment.content.hex(),
        chain=segment.chain.hex(),
    )


def _state(site: str, replay: Replay, source: str, state: Mapping[str, bytes]) -> FinalState:
    content = sha256()
    for key, value in sorted(state.items()):
        for part in (key.encode(), value):
            content.update(len(part).to_bytes(4, "little"))
            content.update(part)
    return FinalState(
        site=SiteName(site),
        stage=replay.stage.name,
        partition=replay.stage.partition,
        segment=replay.head.segment,
        digest=content.hexdigest(),
        source=source,  # type: ignore[arg-type]
    )
