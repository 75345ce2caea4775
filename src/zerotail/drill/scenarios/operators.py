"""Operators: they plan a change, are interrupted in the middle of one, or there are too many of them."""

from __future__ import annotations

from zerotail.core.receiver import ReceiverClass
from zerotail.drill import blows
from zerotail.drill.acts import hand_over, take_steps
from zerotail.drill.commands import (
    CLAIM_LANES,
    TAKEOVER_STEPS,
    ask_for_takeover,
    call,
    kill_takeover_at,
    plan_of_takeover,
    resume_takeover,
)
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import TAKEOVER

_DECLINED = frozenset({3, 4, 5})
"""Exit codes of an act that was refused, got no answer, or lost against another one half way."""


def _handover(rehearsal: Rehearsal) -> None:
    hand_over(rehearsal, rehearsal.standby)


def _failback(rehearsal: Rehearsal) -> None:
    first = rehearsal.active
    hand_over(rehearsal, rehearsal.standby)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.processes[first].end()
    rehearsal.start_site(first, standby=True)
    rehearsal.wait_until_warm(first)
    hand_over(rehearsal, first)


def _killed_at_every_step(rehearsal: Rehearsal) -> None:
    to = rehearsal.standby
    lost = blows.kill_site(rehearsal, rehearsal.active)
    rehearsal.asked_at = lost.fell_at
    claims = ReceiverClass(rehearsal.layout.receiver_class).remembers
    for step in TAKEOVER_STEPS:
        if step == CLAIM_LANES and not claims:
            continue  # there is nobody to be claimed, so a takeover has no such step
        for when in ("begin", "done"):
            kill_takeover_at(rehearsal, to, step, when)
    status = call(rehearsal, to, "takeover", "status").wait()
    rehearsal.promise("a takeover that was killed shows as unfinished", status.code == 1)
    rehearsal.fault = lost
    ended = resume_takeover(rehearsal, to)
    rehearsal.promise("resume finishes it", ended.code == 0)
    rehearsal.active = to


def _operator_twice(rehearsal: Rehearsal) -> None:
    """The link is cut; each site's operator asks for a takeover, at the standby two of them at once."""
    active, standby = rehearsal.active, rehearsal.standby
    fault = blows.cut(rehearsal)
    plan = plan_of_takeover(rehearsal, standby)
    rehearsal.asked_at = rehearsal.note(
        "act", f"takeover asked for at {standby} by two operators, and at {active}, at once"
    )
    notes = [rehearsal.layout.path / f"notes-{number}" for number in (1, 2)]
    asked = [ask_for_takeover(rehearsal, standby, plan, folder) for folder in notes]
    at_home = call(rehearsal, active, "takeover", "run", "--to", active, state=rehearsal.layout.path / "notes-3").wait()
    ended = [one.wait() for one in asked]
    won = [one for one in ended if one.code == 0 and one.said.get("changed")]
    told = ", ".join(f"{one.code} {one.said.get('code', '')}".strip() for one in (*ended, at_home))
    rehearsal.note("act", f"they ended with {told}")
    rehearsal.promise("exactly one takeover is carried out", len(won) == 1)
    declined = [one for one in ended if one.code in _DECLINED or (one.code == 0 and not one.said.get("changed"))]
    rehearsal.promise("the other one is declined with a documented exit code", len(declined) == 1)
    rehearsal.promise("the active site has nothing to take over", at_home.code == 0 and not at_home.said.get("changed"))
    rehearsal.active = standby
    for one, folder in zip(ended, notes, strict=True):
        note = Notebook(folder).find_last((TAKEOVER,)) if one in won else None
        if note is not None:
            take_steps(rehearsal, note)
    blows.heal(rehearsal, fault)
    alone = call(rehearsal, active, "takeover", "plan", "--to", active, "--accept-lost-site", standby).wait()
    rehearsal.promise(f"{active} may not go on alone while {standby} answers", alone.code == 3)


SCENARIOS = (
    Scenario("handover-under-load", "the active role moves while instructions come", _handover),
    Scenario("failback-cycle", "there and back again, by handover", _failback),
    Scenario(
        "takeover-killed-at-every-step",
        "kill -9 of the takeover before and behind each of its steps, then resume",
        _killed_at_every_step,
        ("site-loss", "takeover-killed"),
        replayed=True,
    ),
    Scenario(
        "operator-twice",
        "a takeover is asked for at both sites, and twice at once at one of them",
        _operator_twice,
        ("cut hang",),
    ),
)
