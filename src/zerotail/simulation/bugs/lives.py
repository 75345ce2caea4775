"""Bugs of lives: a primary that was started anew, perhaps without the end of its log."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from typing import Any

from zerotail import ports
from zerotail.core import gate
from zerotail.core.gate import Gate
from zerotail.core.life import Check
from zerotail.failover import rejoin
from zerotail.flow import gate as gates
from zerotail.flow import life
from zerotail.simulation import parts
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.planting import Patch, bug

ROLLBACKS = {
    "clients": 2,
    "instructions": 16,
    "more_faults": (plans.DB_ROLLBACK, plans.LINK_ONE_WAY) * 3,
    "spacing": 13,
}


def _nobody_waits(_: ports.Standing) -> bool:
    return False


def _any_life() -> list[Patch]:
    """The gate asks for no nonce, and does not look who holds more."""
    original = gate.decide

    def decide(answer: Any, asker: Any, wanted: Any) -> Gate:
        return original(answer, type(asker)(asker.system, asker.timeline, asker.epoch, answer.life), wanted)

    return [(gate, "decide", decide), (gates.gate, "is_ahead", lambda *_: False)]


@bug(
    "life-unnoticed",
    "a primary that was started anew works on at once, whatever it has lost",
    "S2",
    "S8",
    "S14",
    "S1",
    "S10",
    "S11",
    where=ROLLBACKS,
)
def _() -> list[Patch]:
    return [(ports.Standing, "waits_for_life", property(_nobody_waits)), *_any_life()]


@bug(
    "life-verified-by-itself",
    "who starts anew says that it is verified, without a look at the other site",
    "S2",
    "S8",
    "S14",
    "S1",
    "S10",
    "S11",
    "L2",
    where=ROLLBACKS,
)
def _() -> list[Patch]:
    def verify() -> ports.Story[Check]:
        seen = yield ports.ReadPosition()
        if isinstance(seen, ports.PositionRead):
            yield ports.BeginLife(seen.standing.epoch, seen.start, verified=True)
        return Check.SOUND

    return [(parts, "verify_life", verify), *_any_life()]


@bug(
    "life-verified-by-positions",
    "a primary whose own log has grown beyond the other site's passes for whole, though the two went different ways",
    "S2",
    "S8",
    "S14",
    "S1",
    "S10",
    "S11",
    "L2",
    where=ROLLBACKS,
)
def _() -> list[Patch]:
    def verify() -> ports.Story[Check]:
        seen = yield ports.ReadPosition()
        answer = yield ports.AskGate()
        if isinstance(seen, ports.PositionRead) and isinstance(answer, gate.GateAnswer):
            found = life.check(answer, seen.standing.asker, seen.position)
            if found is Check.SOUND:
                yield ports.BeginLife(seen.standing.epoch, seen.start, verified=True)
            return found
        return Check.UNKNOWN

    return [(parts, "verify_life", verify)]


@bug(
    "rejoin-of-the-only-copy",
    "a primary that lost the end of its log replaces the copy that has it",
    "S2",
    "S14",
    "S1",
    "S10",
    "S11",
    "L2",
    where=ROLLBACKS | {"more_faults": (plans.DB_ROLLBACK, plans.REJOIN, plans.REJOIN) * 3},
)
def _() -> list[Patch]:
    return [
        (rejoin, "require_verified", lambda *_: None),
        (rejoin, "follows", lambda seen, active: seen.flushed <= active.flushed),
    ]
