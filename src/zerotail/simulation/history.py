"""The history of a simulated run, in the words of the checker, and the checker's verdict on it.

This is the second judge. The quick one looks into the world; this one writes down what each witness saw and
lets the checker of drills decide, by the same rules and with the same code as for real servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from zerotail import ports
from zerotail.core.emission import Lane, Owed
from zerotail.core.epoch import Durability, EpochRow
from zerotail.core.head import Segment, first_head
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Incarnation,
    Lsn,
    PartitionNumber,
    Position,
    ProducerName,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
)
from zerotail.core.poison import Decided, Decision, Remedy
from zerotail.core.record import digest_of
from zerotail.drill import history as drill
from zerotail.drill.chained import ChainedBytes, SegmentName, decisions_of
from zerotail.drill.checker import SIMULATED, check
from zerotail.failover.replay import Replay
from zerotail.simulation.judge import Watch
from zerotail.simulation.kafka import THEIRS
from zerotail.simulation.outside import Attempt
from zerotail.simulation.parts import OTHER, DecidedNote
from zerotail.simulation.postgres import Server
from zerotail.simulation.run import Run
from zerotail.simulation.topology import HOP, D
from zerotail.simulation.violation import Violation
from zerotail.simulation.world import World


def check_run(run: Run, watch: Watch) -> list[Violation]:
    """What the checker finds wrong with a finished run."""
    names = producer_names(run.world)
    decided: dict[SegmentName, Sequence[Decided]] = {}
    for server in run.world.servers.values():
        for place, segments in server.table("segments").items():
            decided |= decisions_of(server.site, place[0], place[1], segments)
    chained = ChainedBytes({name: number for number, name in names.items()}, decided)
    verdict = check(history_of(run, watch), SIMULATED, content_of=chained)
    return [Violation(violation.rule, violation.says) for violation in verdict.violations]


def producer_names(world: World) -> dict[ProducerNumber, ProducerName]:
    """What the checker calls the producers."""
    names = {feed.producer: ProducerName(f"p{feed.producer}") for feed in world.topology.feeds if feed.lane is None}
    for number, lane in world.topology.inner.items():
        names[number] = drill.hop_producer("c", lane.partition)
    return names


def history_of(run: Run, watch: Watch) -> list[drill.AnyEvent]:
    """Everything that the witnesses of a run saw, in order."""
    stamped: list[drill.AnyEvent] = []
    for sequence, event in enumerate(_events(run, watch), start=1):
        time, recorder, kind, fields = event
        stamped.append(kind(time=time, recorder=recorder, sequence=sequence, **fields))
    return drill.merged(stamped)


_Event = tuple[int, str, Any, dict[str, Any]]


def _events(run: Run, watch: Watch) -> Iterator[_Event]:
    names = producer_names(run.world)
    yield from _declared(run, names)
    for time, row in watch.rows:
        yield time, "database", drill.EpochOpened, _opened(row)
    for time, row in watch.gatings:
        fields = {"epoch": row.epoch, "site": row.site, "mode": "gated"}
        yield time, "database", drill.ModeChanged, fields
    for client in run.clients:
        yield from _client(client, names)
    for time, site, effect in watch.releases:
        yield time, "sender", drill.Released, _released(site, effect)
    for time, doubt in watch.listed:
        for number in range(doubt.first, doubt.last + 1):
            fields = _lane_fields(doubt.lane) | {"number": number, **_claim_fields(doubt)}
            yield time, "sender", drill.DoubtListed, fields
    for decided in _surviving_decisions(run.world):
        yield decided.time, "operator", drill.PoisonDecided, _poison_decided(decided, names)
    for note in run.world.outside:
        if getattr(note, "installation", "") != THEIRS.name:
            yield _outside(note)
    end = run.world.moment + 1
    begun = {"rule": "L2", "what": "rest", "limit": 1}
    yield end, "run", drill.LimitBegan, begun
    if run.quiet_at is not None:
        yield end + 1, "run", drill.LimitReached, {"rule": "L2", "what": "rest"}
    else:
        yield end + 9, "run", drill.LimitReached, {"rule": "L2", "what": "rest"}
    yield from _final(run, names, end + 10)


def _surviving_decisions(world: World) -> list[DecidedNote]:
    """Those that the final database holds: a takeover may lose one before anything depended on it."""
    held = {
        id(value)
        for entry in world.servers[world.active].log
        for _, table, _, value in entry.writes
        if table == "poison" and isinstance(value, Decision)
    }
    return [note for note in world.decided if id(note.decision) in held]


def _poison_decided(note: DecidedNote, names: dict[ProducerNumber, ProducerName]) -> dict[str, Any]:
    return {
        "stage": note.stage,
        "producer": names[note.producer],
        "partition": note.partition,
        "serial": note.serial,
        "digest": note.digest.hex(),
        "decision": "retry" if note.decision is None else note.decision.remedy.value,
    }


def _declared(run: Run, names: dict[ProducerNumber, ProducerName]) -> Iterator[_Event]:
    topology = run.topology
    for stage, producers in topology.producers.items():
        fields = {"stage": stage, "producers": tuple(names[number] for number in producers)}
        yield 0, "run", drill.StageDeclared, fields
    channels: dict[ChannelName, dict[str, Any]] = {}
    for lane, stage in topology.lane_stages.items():
        receiver = topology.lanes.get(lane)
        channels[lane.channel] = {
            "channel": lane.channel,
            "stage": stage,
            "receiver": receiver.value if receiver else "stage",
            "target_stage": D if lane.channel == HOP else StageName(""),
            "window": run.plan.window if receiver and receiver.value == "R3" else None,
        }
    for fields in channels.values():
        yield 0, "run", drill.ChannelDeclared, fields


def _opened(row: EpochRow) -> dict[str, Any]:
    exposed = row.durability is Durability.EXPOSED
    return {
        "epoch": row.epoch,
        "site": row.site,
        "mode": row.durability.value,
        "cause": row.cause,
        "timeline": row.timeline,
        "operator": exposed and row.cause != "takeover",
        "cuts": tuple(
            drill.Cut(cut.stage, cut.partition, cut.segment, cut.next_position, cut.chain.hex())
            for cut in row.cut.heads
        ),
    }


def _client(client: Any, names: dict[ProducerNumber, ProducerName]) -> Iterator[_Event]:
    recorder = f"client-{client.code}"
    for time, instruction, _ in client.invoked:
        fields = {
            "id": instruction.identifier,
            "producer": names[instruction.producer],
            "partition": instruction.partition,
            "digest": _digest(instruction.value),
        }
        yield time, recorder, drill.SubmitInvoked, fields
    for time, instruction, value in client.accepted:
        if isinstance(value, int):
            yield time, recorder, drill.SubmitAccepted, {"id": instruction.identifier, "serial": value}
        elif isinstance(value, ports.Refused):
            yield time, recorder, drill.SubmitFailed, {"id": instruction.identifier}
        else:
            yield time, recorder, drill.SubmitUnknown, {"id": instruction.identifier}


def _lane_fields(lane: Lane) -> dict[str, Any]:
    return {"channel": lane.channel, "partition": lane.partition, "target_partition": lane.target}


def _claim_fields(effect: Any) -> dict[str, Any]:
    return {"epoch": effect.epoch, "incarnation": effect.incarnation}


def _released(site: SiteName, effect: ports.SendEmissions) -> dict[str, Any]:
    release = effect.release
    fields = _lane_fields(effect.lane) | _claim_fields(effect)
    fields |= {"site": site, "through": effect.first + len(effect.values) - 1, "by": "exposure"}
    fields["timeline"] = release.asker.timeline
    if release.answer is not None:
        fields |= {
            "by": "gate",
            "lsn_wanted": release.wanted,
            "other_lsn_flushed": release.answer.flushed,
            "other_timeline": release.answer.timeline,
            "other_epoch": release.answer.epoch,
            "other_in_recovery": release.answer.in_recovery,
        }
    return fields


def _outside(note: Any) -> _Event:
    if isinstance(note, Attempt):
        fields = _lane_fields(note.lane) | {
            "number": EmissionNumber(note.number),
            "digest": _digest(note.value),
            "epoch": note.epoch,
            "incarnation": Incarnation(note.incarnation),
            "site": note.site,
            "answer": note.answer,
        }
        return note.time, "outside", drill.EmissionAttempted, fields
    claim = note.effect
    fields = {
        "channel": claim.lane.channel,
        "partition": claim.lane.partition,
        "site": note.site,
        "answer": "accepted" if note.allowed else "older-epoch",
        **_claim_fields(claim),
    }
    return note.time, "outside", drill.ChannelClaimed, fields


def _final(run: Run, names: dict[ProducerNumber, ProducerName], time: int) -> Iterator[_Event]:
    world = run.world
    active = world.servers[world.active]
    standby = world.servers[OTHER[world.active]]
    yield from _site(world, active, "active", names, time)
    if run.quiet_at is not None:
        yield from _site(world, standby, "standby", names, time)
    divergent = [(one, "deposed") for one in world.diverged] + [(one, "audit") for one in world.kept]
    for (site, segment, stage, partition), found in divergent:
        fields = {
            "site": site,
            "stage": stage,
            "partition": partition,
            "segment": segment.segment,
            "epoch": segment.epoch,
            "chain": segment.chain.hex(),
            "found": found,
        }
        yield time, "reader", drill.DivergentSegment, fields


def _site(
    world: World, server: Server, role: str, names: dict[ProducerNumber, ProducerName], time: int
) -> Iterator[_Event]:
    epochs = tuple(row.epoch for row in server.lineage.rows)
    yield time, "reader", drill.FinalSite, {"site": server.site, "role": role, "epochs": epochs}
    for (producer, partition), rows in server.table("instructions").items():
        for serial, (identifier, value) in enumerate(rows, start=1):
            fields = {
                "site": server.site,
                "producer": names[producer],
                "partition": partition,
                "serial": Serial(serial),
                "id": identifier,
                "digest": _digest(value),
            }
            yield time, "reader", drill.FinalInstruction, fields
    places = _places_in_log(server)
    for stage in world.topology.stages:
        place = (stage.name, stage.partition)
        replay = Replay(stage, first_head(epochs[0], world.topology.producers[stage.name]))
        segments: Sequence[Segment] = server.table("segments").get(place, ())
        for segment in segments:
            owed = replay.apply(segment, world.values_of(server, place[1], segment))
            lsn = places.get((place, segment.segment), 0)
            fields = _segment(server.site, place, segment, owed, names, lsn)
            yield time, "reader", drill.FinalSegment, fields
        stored = {key[2]: value for key, value in server.table("state").items() if key[:2] == place and value}
        for source, state in (("database", stored), ("replay", replay.state)):
            fields = {
                "site": server.site,
                "stage": stage.name,
                "partition": stage.partition,
                "segment": replay.head.segment,
                "digest": sha256(repr(sorted(state.items())).encode()).hexdigest(),
                "source": source,
            }
            yield time, "reader", drill.FinalState, fields


def _places_in_log(server: Server) -> dict[tuple[tuple[StageName, PartitionNumber], int], int]:
    """Behind which position of the log each segment's commit lies."""
    places = {}
    for position, entry in enumerate(server.log, start=1):
        for _, table, key, value in entry.writes:
            if table == "segments":
                places.update({(key, segment.segment): position for segment in value})
    return places


def _segment(
    site: SiteName,
    place: tuple[StageName, PartitionNumber],
    segment: Segment,
    owed: Owed,
    names: dict[ProducerNumber, ProducerName],
    lsn: int,
) -> dict[str, Any]:
    return {
        "site": site,
        "stage": place[0],
        "partition": place[1],
        "segment": segment.segment,
        "epoch": segment.epoch,
        "first_position": segment.first_position,
        "runs": tuple(drill.Run(names[producer], first, count) for producer, first, count in segment.runs),
        "inputs": tuple(digest.hex() for digest in segment.digests),
        "skipped": tuple(
            Position(segment.first_position + place)
            for place, decision in segment.decided
            if decision.remedy is Remedy.SKIP
        ),
        "emissions": tuple(
            drill.Emission(channel, EmissionNumber(number), _digest(value), target)
            for (channel, target), (first, emitted) in owed.items()
            for number, value in enumerate(emitted, first)
        ),
        "decided_at": segment.decided_at,
        "version": segment.version,
        "previous": segment.previous.hex(),
        "content": segment.content.hex(),
        "chain": segment.chain.hex(),
        "lsn": Lsn(lsn),
    }


def _digest(value: bytes) -> str:
    return digest_of(value).hex()


__all__ = ["Timeline", "check_run", "history_of"]
