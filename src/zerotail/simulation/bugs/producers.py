"""Bugs of admission and of producers."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# ruff: noqa: ARG001
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from zerotail import ports
from zerotail.core import admission
from zerotail.core.admission import Admission, Arrivals
from zerotail.core.installation import Installation
from zerotail.flow import produce, stage
from zerotail.simulation import parts
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.planting import SITE_CHANGES, Patch, bug
from zerotail.simulation.normal_day import NormalDay
from zerotail.simulation.world import World


def _admit(change: Callable[[Arrivals, Any, Any, Admission], Admission]) -> Patch:
    original = admission.admit

    def admit(arrivals: Arrivals, vector: Any, limits: Any) -> Admission:
        return change(arrivals, vector, limits, original(arrivals, vector, limits))

    return (admission, "admit", admit)


@bug("identity-not-told", "receivers are not told which installation a message is from", "S2", "S6", "I21", "I7")
def _() -> list[Patch]:
    return [(Installation, "outside", "")]


@bug("repeat-applied", "a record that was taken before is taken again", "S12", "S11", "S2")
def _() -> list[Patch]:
    def change(arrivals: Arrivals, vector: Any, _: Any, found: Admission) -> Admission:
        accepted = [
            index
            for index, producer in enumerate(arrivals.producers)
            if index in found.accepted or (producer in vector and arrivals.serials[index] <= vector[producer])
        ]
        return replace(found, accepted=accepted)

    return [_admit(change)]


@bug("gap-skipped", "a record is taken though one before it is missing", "S4", "S12")
def _() -> list[Patch]:
    def change(arrivals: Arrivals, vector: Any, limits: Any, found: Admission) -> Admission:
        reached, accepted = dict(vector), []
        for index, (producer, serial) in enumerate(zip(arrivals.producers, arrivals.serials, strict=True)):
            if producer in reached and serial > reached[producer] and arrivals.epochs[index] == max(limits):
                reached[producer] = serial
                accepted.append(index)
        return replace(found, accepted=accepted, vector=reached, gaps={})

    return [_admit(change)]


@bug(
    "foreign-record-applied",
    "a record without our header is taken",
    "S2",
    "S12",
    "S10",
    "S4",
    where={"more_faults": (plans.KAFKA_FOREIGN,) * 4},
)
def _() -> list[Patch]:
    def change(arrivals: Arrivals, vector: Any, _: Any, found: Admission) -> Admission:
        taken = [index for index, producer in enumerate(arrivals.producers) if producer == 0]
        return replace(found, accepted=sorted([*found.accepted, *taken]))

    return [_admit(change)]


@bug(
    "installation-ignored",
    "a record of another installation is taken for one of its own",
    "S2",
    "S12",
    "S10",
    "S4",
    where={"more_faults": (plans.KAFKA_OTHERS,) * 8, "spacing": 11},
)
def _() -> list[Patch]:
    return [(Installation, "owns", lambda _, __: True)]


@bug(
    "standing-vector-ignored",
    "a producer does not notice that its last records never arrived",
    "L2",
    where={"more_faults": (plans.KAFKA_TRUNCATE,) * 6},
)
def _() -> list[Patch]:
    return [(produce, "STANDING_READS", 1 << 30)]


@bug(
    "gap-not-reported",
    "a stage asks nobody to send again",
    "L2",
    equivalent="a producer sees the vector stand still and sends again by itself, only later",
)
def _() -> list[Patch]:
    def ignore(self: World, actor: Any, effect: Any) -> Any:
        return parts.DONE

    return [(World, "_request_again", ignore)]


@bug(
    "lost-answer-of-kafka-taken-as-sent",
    "a producer believes that records without an acknowledgement arrived",
    "L2",
    equivalent="the stage sees a gap, or the vector stands still: they are sent again either way",
)
def _() -> list[Patch]:
    original = produce.produce

    def believing(feed: Any, site: Any, **options: Any) -> ports.Story[Any]:
        inner = original(feed, site, **options)
        result = None
        while True:
            try:
                effect = inner.send(result)
            except StopIteration as stop:
                return stop.value
            result = yield effect
            if isinstance(effect, ports.SendRecords):
                result = ports.Done()

    from zerotail.simulation import run

    return [(run, "produce", believing)]


@bug("submission-stored-twice", "a repeated submission is a new instruction", "S3", "S14")
def _() -> list[Patch]:
    original = World._submit

    def submit_again(self: World, actor: Any, effect: ports.Submit) -> Any:
        server = self.server(actor)
        if server is not None and not server.in_recovery:
            server.table("ids").pop(effect.id, None)
        return original(self, actor, effect)

    return [(World, "_submit", submit_again)]


@bug(
    "idle-stage-never-looks",
    "a stage without records never finds out that another one took its place",
    "L2",
    where=SITE_CHANGES,
)
def _() -> list[Patch]:
    return [(stage, "IDLE_POLLS", 1 << 30)]


@bug(
    "drain-outlives-its-act",
    "a handover that was killed while it drained leaves the way in shut",
    "L2",
    where={"more_faults": (plans.HANDOVER, plans.HANDOVER, plans.CRASH_AFTER, plans.CRASH_AFTER), "spacing": 7},
)
def _() -> list[Patch]:
    def shut(world: Any, site: Any) -> bool:
        return False

    return [(NormalDay, "way_in_is_open", shut)]
