"""Bugs toward receivers that can do nothing."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# ruff: noqa: ARG001
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from typing import Any

from zerotail import ports
from zerotail.core.identity import EmissionNumber, Lsn
from zerotail.core.receiver import DoubtPolicy, ReceiverClass, Resume
from zerotail.simulation import normal_day, operators, parts
from zerotail.simulation.bugs.emissions import resume_with
from zerotail.simulation.bugs.planting import R3, SITE_CHANGES, Patch, bug
from zerotail.simulation.world import World


@bug("intent-missing", "an R3 batch is sent without saying so before", "S3", where=R3)
def _() -> list[Patch]:
    def forget(self: World, actor: Any, effect: ports.RecordIntent) -> Any:
        return ports.Done(self.servers[actor.site].position)

    return [(World, "_record_intent", forget)]


@bug(
    "intent-before-the-gate",
    "the intent is stored, and nobody waits until the other site has it",
    "S3",
    where=R3 | SITE_CHANGES,
)
def _() -> list[Patch]:
    original = World._record_intent

    def early(self: World, actor: Any, effect: ports.RecordIntent) -> Any:
        position = self.servers[actor.site].position
        found = original(self, actor, effect)
        return ports.Done(Lsn(max(0, position - 3))) if isinstance(found, ports.Done) else found

    return [(World, "_record_intent", early)]


@bug(
    "doubt-not-listed",
    "numbers in doubt are sent again and nobody is told",
    "S3",
    where=R3 | {"policy": DoubtPolicy.RESEND},
)
def _() -> list[Patch]:
    def forget(self: World, actor: Any, effect: ports.RecordDoubts) -> Any:
        return ports.Done(self.servers[actor.site].position)

    return [(World, "_record_doubts", forget)]


@bug("doubt-taken-as-received", "numbers in doubt are dropped", "S1", "S5", where=R3)
def _() -> list[Patch]:
    def change(_: Any, __: Any, of: ReceiverClass, record: Any, *___: Any) -> Resume:
        return Resume(EmissionNumber(record.intended + 1), EmissionNumber(0))

    return [resume_with(change)]


@bug(
    "doubt-settled-under-a-living-sender",
    "an operator settles a number that a sender intends at this moment",
    "S3",
    "S1",
    "S5",
    where=R3 | {"policy": DoubtPolicy.HOLD},
)
def _() -> list[Patch]:
    def settle(self: World, actor: Any, effect: ports.SettleDoubts) -> Any:
        server = self.server(actor)
        if server is None or server.in_recovery:
            return parts.UNREACHABLE
        row = server.table("lanes")[effect.lane]
        settled = (row[0], row[1], effect.received, effect.received)
        return self._store(actor, server, [(normal_day.SET, "lanes", effect.lane, settled)], parts.DONE)

    return [(World, "_settle_doubts", settle), (operators.Operators, "_sender_frozen", lambda *_: False)]
