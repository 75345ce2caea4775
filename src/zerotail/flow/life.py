"""A server that was started anew: make sure that the other site holds no more of its log, and say so.

Whoever finds that nobody has done it does it. Several may at once; the row of one of them stands.
"""

from __future__ import annotations

from zerotail.core.epoch import Durability
from zerotail.core.gate import GateAnswer
from zerotail.core.life import Check, check
from zerotail.ports import AskGate, BeginLife, PositionRead, ReadPosition, Story


def verify_life() -> Story[Check]:
    """What was found; `SOUND` when the life was begun, or was verified before."""
    before = yield ReadPosition()
    if not isinstance(before, PositionRead):
        return Check.UNKNOWN
    if not before.standing.waits_for_life:
        return Check.SOUND
    standing = before.standing
    exposed = standing.lineage.current.durability is Durability.EXPOSED
    answer = yield AskGate()
    # How far the log reaches is asked last: the other site may receive some of it meanwhile.
    here = yield ReadPosition()
    if not isinstance(here, PositionRead) or here.start != before.start:
        return Check.UNKNOWN
    found = check(answer, standing.asker, here.position) if isinstance(answer, GateAnswer) else Check.UNKNOWN
    if found is Check.AHEAD:
        return found
    # Positions alone show no history: who has applied the nonce follows this very server.
    follows = isinstance(answer, GateAnswer) and answer.life == before.nonce != ""
    if exposed or (follows and found is Check.SOUND):
        yield BeginLife(standing.epoch, before.start, verified=True)
        return Check.SOUND
    if found is Check.SOUND and not before.nonce:
        yield BeginLife(standing.epoch, before.start, verified=False)
    return Check.UNKNOWN
