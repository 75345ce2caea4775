"""Bugs of the gate."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zerotail import ports
from zerotail.core import gate
from zerotail.core.gate import Gate, GateAnswer, Release
from zerotail.core.identity import Lsn
from zerotail.failover import takeover as takeovers
from zerotail.flow import emit, produce, submit
from zerotail.simulation import parts
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.epochs import no_limits
from zerotail.simulation.bugs.planting import CUT_OFF, HOPS, INSIDE, Patch, bug
from zerotail.simulation.world import World


def _pretend(standing: ports.Standing, wanted: Lsn, **_: Any) -> ports.Story[Release | None]:
    asker = standing.asker
    return Release(asker, wanted, GateAnswer(True, asker.system, asker.timeline, asker.epoch, wanted))
    yield


@bug("gate-missing", "emissions leave at once", "S8", "S2", where=CUT_OFF)
def _() -> list[Patch]:
    return [(emit, "pass_gate", _pretend)]


@bug(
    "gate-asks-the-own-database",
    "the row is visible here, so it must be there",
    "S8",
    "S2",
    "S14",
    "S1",
    where=CUT_OFF,
)
def _() -> list[Patch]:
    def own(self: World, actor: Any, _: Any) -> Any:
        server = self.server(actor)
        return parts.UNREACHABLE if server is None else replace(server.gate_answer(), in_recovery=True)

    return [(World, "_ask_gate", own)]


@bug("gate-falls-back", "nobody answers, so it is released", "S18", "S8", "S2", where=CUT_OFF)
def _() -> list[Patch]:
    original = emit.pass_gate

    def fall_back(standing: ports.Standing, wanted: Lsn, **options: Any) -> ports.Story[Release | None]:
        found = yield from original(standing, wanted, **options)
        return found or Release(standing.asker, wanted, None)

    return [(emit, "pass_gate", fall_back)]


@bug("gate-compares-positions-only", "neither role nor timeline nor epoch is compared", "S8", "S2", "I9")
def _() -> list[Patch]:
    return [(gate, "decide", lambda answer, _, wanted: Gate.OPEN if answer.flushed >= wanted else Gate.BEHIND)]


@bug(
    "gate-ignores-timeline",
    "a position that another timeline reached counts, though the standby has not replayed the new epoch yet",
    "S8",
    "S14",
    "S1",
    "S3",
    where={"more_faults": (plans.FREEZE, plans.DB_FAILOVER, plans.FREEZE, plans.TAKEOVER_BOTH)},
    seed=100,
)
def _() -> list[Patch]:
    return [decide_with(timeline=False)]


@bug(
    "gate-ignores-epoch",
    "positions of another epoch count",
    "S8",
    equivalent="every change of lineage is a change of the timeline, and that is compared",
)
def _() -> list[Patch]:
    return [decide_with(epoch=False)]


def decide_with(**without: bool) -> Patch:
    original = gate.decide

    def decide(answer: GateAnswer, asker: gate.Asker, wanted: Lsn) -> Gate:
        return original(replace(answer, **{name: getattr(asker, name) for name in without}), asker, wanted)

    return (gate, "decide", decide)


@bug("gate-once-open-stays-open", "an emitter asks once and never again", "S8", "S2", where=CUT_OFF)
def _() -> list[Patch]:
    original = emit.pass_gate
    opened: dict[Any, bool] = {}

    def ask_once(standing: ports.Standing, wanted: Lsn, **options: Any) -> ports.Story[Release | None]:
        if opened.get(standing.asker):
            return (yield from _pretend(standing, wanted))
        found = yield from original(standing, wanted, **options)
        opened[standing.asker] = found is not None
        return found

    return [(emit, "pass_gate", ask_once)]


@bug("gate-position-before-rows", "the log's position is taken before the outbox is read", "S8", "S2")
def _() -> list[Patch]:
    original = World._read_lane
    before: dict[Any, Lsn] = {}

    def read(self: World, actor: Any, effect: ports.ReadLane) -> Any:
        found = original(self, actor, effect)
        if isinstance(found, ports.LaneRead):
            earlier = before.get((id(self), actor.site), Lsn(0))
            before[id(self), actor.site] = found.position
            return ports.LaneRead(
                found.standing, min(earlier, found.position), found.incarnation, found.record, found.values
            )
        return found

    return [(World, "_read_lane", read)]


@bug("submission-acknowledged-at-commit", "a client is told yes before the gate", "S1", "S14", where=CUT_OFF)
def _() -> list[Patch]:
    return [(submit, "pass_gate", _pretend)]


@bug(
    "epoch-live-before-the-gate",
    "a renewed epoch goes to work before the other site knows it",
    "S7",
    "I21",
    "S2",
    "S16",
    "S6",
    where=INSIDE,
)
def _() -> list[Patch]:
    def skip(_: Any) -> ports.Story[None]:
        return
        yield

    return [(takeovers, "_gate_the_epoch", skip)]


@bug(
    "hop-before-the-gate",
    "an inner topic is written after the local commit",
    "S2",
    where=HOPS,
    equivalent="the next stage's own segment lies behind it in the same log, and the orphan filter removes what a "
    "failover takes back: the pipelined rule of the theory",
)
def _() -> list[Patch]:
    return [(produce, "pass_gate", _pretend)]


@bug(
    "hop-before-the-gate-unfiltered",
    "the same, without the orphan filter",
    "S2",
    where=HOPS | INSIDE,
)
def _() -> list[Patch]:
    return [(produce, "pass_gate", _pretend), no_limits()]
