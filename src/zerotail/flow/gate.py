"""Waiting at the gate: ask the remote standby until what was read may leave, or give up for now.

The wanted position stays the same over all questions of one wait, else a busy database would run away from
it. After a few of them the caller gets its turn back and reads again, because the epoch may have changed
meanwhile.
"""

from __future__ import annotations

from zerotail.core import gate
from zerotail.core.epoch import Durability
from zerotail.core.gate import Asker, Gate, GateAnswer, Release
from zerotail.core.identity import Lsn
from zerotail.errors import Broken, Unfinished
from zerotail.ports import AskGate, EndLife, EndRead, Pause, ReadEnd, Standing, Story

QUESTIONS = 4
"""Of one wait at the gate."""
PATIENCE = 200
"""Questions to another site that has not come nearer since, of a step that cannot go on before it has caught up."""


def pass_gate(standing: Standing, wanted: Lsn, *, release_exposed: bool = True) -> Story[Release | None]:
    """The evidence that everything below `wanted` may leave; None when it may not, or not yet."""
    asker = standing.asker
    if standing.lineage.current.durability is Durability.EXPOSED:
        return Release(asker, wanted, None) if release_exposed else None
    for _ in range(QUESTIONS):
        answer = yield AskGate()
        if isinstance(answer, GateAnswer):
            verdict = gate.decide(answer, asker, wanted)
            if verdict is Gate.OPEN:
                certain = answer.flushed <= wanted or (yield from _require_more_here(standing, answer))
                return Release(asker, wanted, answer) if certain else None
            if verdict is not Gate.BEHIND:
                break
        yield Pause("the gate is closed")
    return None


def _require_more_here(standing: Standing, answer: GateAnswer) -> Story[bool]:
    """Others write as well, so the other site may well hold more than is wanted; but never more than there is here."""
    here = yield ReadEnd()
    if not isinstance(here, EndRead) or here.asker != standing.asker:
        return False
    if gate.is_ahead(answer, here.position):
        site = standing.lineage.current.site
        # Positions say so for a moment only: once the log here has grown beyond the other site's, they look alright.
        yield EndLife(standing.life)
        raise Broken(
            f"the other site holds the log up to {answer.flushed}, and here it ends at {here.position}.",
            code="ZT416",
            why="The database here has lost the end of its log, and the other site holds more than it.",
            tries=(
                "zerotail status",
                f"zerotail takeover plan --to SITE    # the one that is not {site}: it loses nothing",
            ),
        )
    return True


def wait_for_gate(asker: Asker, wanted: Lsn) -> Story[None]:
    """Wait until the other site has flushed `wanted`: as long as it comes nearer, and for some time where it stands."""
    silent = found = "its database does not answer"
    nearest, left = Lsn(0), PATIENCE
    while left:
        answer = yield AskGate()
        left -= 1
        nearer, seen = False, silent
        if isinstance(answer, GateAnswer):
            verdict = gate.decide(answer, asker, wanted)
            if verdict is Gate.OPEN:
                return
            held = max(answer.flushed, answer.applied)
            # Who has the epoch hears of this life soon, or never: it is another one by now.
            if held > nearest and verdict is not Gate.OTHER_LIFE and _comes_nearer(answer, asker):
                nearest, left, nearer = held, PATIENCE, True
            seen = verdict.value
            found = (
                f"{seen}. Wanted: epoch {asker.epoch}, timeline {asker.timeline}, log up to {wanted}; "
                f"it has epoch {answer.epoch}, timeline {answer.timeline} (0: it receives no log), {answer.flushed}"
            )
        if (yield Pause(f"the other site to catch up: {seen}", nearer=nearer)):
            break
    raise Unfinished(
        "the other site has not caught up in time; run it again.", code="ZT411", why=f"Its last answer: {found}."
    )


def _comes_nearer(answer: GateAnswer, asker: Asker) -> bool:
    """Whether what a standby holds is the asker's log: it receives it, or still applies what its own files have of it.

    One that receives another log may grow for ever, and is no nearer.
    """
    return answer.in_recovery and answer.system == asker.system and answer.timeline in (0, asker.timeline)
