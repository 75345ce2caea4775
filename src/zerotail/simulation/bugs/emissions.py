"""Bugs of emission."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# ruff: noqa: ARG001
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zerotail import ports
from zerotail.core import receiver
from zerotail.core.identity import EmissionNumber
from zerotail.core.receiver import ReceiverClass, Resume
from zerotail.flow import emit
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.planting import R0_KAFKA, R1, R2, R3, Patch, bug
from zerotail.simulation.outside import Receiver
from zerotail.simulation.world import World


@bug("acknowledged-before-sent", "the acknowledgement is noted before the batch is sent", "S5", "I9", "S1")
def _() -> list[Patch]:
    original = emit._send_batch

    def send(sender: Any, claim: Any, resume: Resume, read: ports.LaneRead) -> ports.Story[Any]:
        last = EmissionNumber(resume.next_number + len(read.values) - 1)
        yield ports.RecordAcknowledged(sender.lane, claim.epoch, claim.incarnation, last)
        return (yield from original(sender, claim, resume, read))

    return [(emit, "_send_batch", send)]


@bug("lost-answer-taken-as-accepted", "a batch without an answer counts as received", "S5", "S1", "I9", "L2")
def _() -> list[Patch]:
    original = emit._send_batch

    def send(sender: Any, claim: Any, resume: Resume, read: ports.LaneRead) -> ports.Story[Any]:
        inner = original(sender, claim, resume, read)
        result = None
        while True:
            try:
                effect = inner.send(result)
            except StopIteration as stop:
                return stop.value
            result = yield effect
            if isinstance(effect, ports.SendEmissions) and isinstance(result, ports.Indefinite | ports.Unreachable):
                result = ports.Accepted(EmissionNumber(effect.first + len(effect.values) - 1))

    return [(emit, "_send_batch", send)]


def resume_with(change: Callable[..., Any]) -> Patch:
    original = receiver.plan_resume

    def plan(lane: Any, of: ReceiverClass, record: Any, welcome: Any, policy: Any) -> Any:
        return change(original, lane, of, record, welcome, policy)

    return (receiver, "plan_resume", plan)


@bug(
    "resume-at-acknowledged",
    "an R2 receiver is not asked where it stands",
    "L2",
    "S6",
    where=R2,
    equivalent="it drops what of a batch it has, and takes the rest",
)
def _() -> list[Patch]:
    def change(_: Any, __: Any, ___: Any, record: Any, *____: Any) -> Resume:
        return Resume(EmissionNumber(record.acknowledged + 1), record.journaled)

    return [resume_with(change)]


@bug("resume-at-journaled", "a sender goes on behind everything journaled", "S5", "S1", "L2")
def _() -> list[Patch]:
    def change(_: Any, __: Any, ___: Any, record: Any, *____: Any) -> Resume:
        return Resume(EmissionNumber(record.journaled + 1), EmissionNumber(0))

    return [resume_with(change)]


@bug("resume-one-too-late", "a sender that starts skips one number", "S5", "L2", where=R1)
def _() -> list[Patch]:
    def change(original: Any, *arguments: Any) -> Any:
        found = original(*arguments)
        if isinstance(found, Resume) and found.next_number > 1:
            return Resume(EmissionNumber(found.next_number + 1), found.doubtful_until)
        return found

    return [resume_with(change)]


@bug("no-claim-at-the-receiver", "a sender begins without telling the receiver", "S7", "S6", where=R2)
def _() -> list[Patch]:
    def silent(self: World, actor: Any, effect: ports.ClaimAtReceiver) -> Any:
        return receiver.Welcome(self.receivers[effect.lane].last, None)

    return [(World, "_claim_at_receiver", silent)]


@bug(
    "receiver-takes-older-senders",
    "the receiver does not keep its contract",
    "S6",
    where=R2 | {"more_faults": (plans.FREEZE,) * 6},
)
def _() -> list[Patch]:
    original = Receiver._in_order

    def in_order(self: Receiver, time: int, site: str, effect: ports.SendEmissions) -> Any:
        claim, self.claim = self.claim, None
        try:
            return original(self, time, site, effect)
        finally:
            self.claim = claim

    return [(Receiver, "_in_order", in_order)]


@bug(
    "topic-takes-replaced-producers",
    "a transaction of a producer that was replaced is committed",
    "S6",
    where=R0_KAFKA | {"more_faults": (plans.FREEZE,) * 6},
)
def _() -> list[Patch]:
    def take(self: Receiver, time: int, writer: Any, effect: ports.SendEmissions) -> Any:
        for number, value in enumerate(effect.values, effect.first):
            self._note(time, writer.site, effect, number, value, "accepted" if number > self.last else "repeat")
        return ports.Accepted(self.last)

    return [(Receiver, "_with_producer", take)]


@bug(
    "replaced-sender-not-noticed",
    "a sender believes what the receiver told it long ago",
    "I9",
    where=R2 | {"more_faults": (plans.FREEZE,) * 6},
)
def _() -> list[Patch]:
    def still_ours(sender: Any, claim: Any, read: ports.LaneRead) -> bool:
        return read.standing.epoch == claim.epoch and read.standing.live_at(sender.site)

    return [(emit, "_still_ours", still_ours)]


@bug("two-senders-one-incarnation", "a start is not counted", "S3", "S6", where=R3)
def _() -> list[Patch]:
    original = World._claim_lane

    def claim(self: World, actor: Any, effect: ports.ClaimLane) -> Any:
        found = original(self, actor, effect)
        if isinstance(found, ports.LaneClaimed):
            server = self.servers[actor.site]
            row = server.table("lanes")[effect.lane]
            server.table("lanes")[effect.lane] = (row[0], 1, row[2], row[3])
            return ports.LaneClaimed(found.standing, type(found.incarnation)(1), found.position)
        return found

    return [(World, "_claim_lane", claim)]
