"""Operators: they plan a change, are interrupted in the middle of one, or there are too many of them."""

from __future__ import annotations

from zerotail.core.receiver import ReceiverClass
from zerotail.drill import blows
from zerotail.drill.acts import hand_over
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

_DECLINED = frozenset({3, 4, 5})
"""Exit codes of an act that was refused, got no answer, or lost against another one half way."""


def _handover(stage: Rehearsal) -> None:
    hand_over(stage, stage.standby)


def _failback(stage: Rehearsal) -> None:
    first = stage.active
    hand_over(stage, stage.standby)
    stage.wait_for_new(MESSAGES)
    stage.processes[first].end()
    stage.start_site(first, standby=True)
    stage.wait_until_warm(first)
    hand_over(stage, first)


def _killed_at_every_step(stage: Rehearsal) -> None:
    to = stage.standby
    blows.kill_site(stage, stage.active)
    lost_at, stage.asked_at = stage.fault_at, stage.events[-1].at
    claims = ReceiverClass(stage.layout.receiver_class).remembers
    for step in TAKEOVER_STEPS:
        if step == CLAIM_LANES and not claims:
            continue  # there is nobody to be claimed, so a takeover has no such step
        for when in ("begin", "done"):
            kill_takeover_at(stage, to, step, when)
    status = call(stage, to, "takeover", "status").wait()
    stage.promise("a takeover that was killed shows as unfinished", status.code == 1)
    stage.fault_at = lost_at
    ended = resume_takeover(stage, to)
    stage.promise("resume finishes it", ended.code == 0)
    stage.active = to


def _operator_twice(stage: Rehearsal) -> None:
    """The link is cut; each site's operator asks for a takeover, at the standby two of them at once."""
    active, standby = stage.active, stage.standby
    fault = blows.cut(stage)
    plan = plan_of_takeover(stage, standby)
    stage.asked_at = stage.note("act", f"takeover asked for at {standby} by two operators, and at {active}, at once")
    notes = [stage.layout.path / f"notes-{number}" for number in (1, 2)]
    asked = [ask_for_takeover(stage, standby, plan, folder) for folder in notes]
    at_home = call(stage, active, "takeover", "run", "--to", active, state=stage.layout.path / "notes-3").wait()
    ended = [one.wait() for one in asked]
    won = [one for one in ended if one.code == 0 and one.said.get("changed")]
    told = ", ".join(f"{one.code} {one.said.get('code', '')}".strip() for one in (*ended, at_home))
    stage.note("act", f"they ended with {told}")
    stage.promise("exactly one takeover is carried out", len(won) == 1)
    declined = [one for one in ended if one.code in _DECLINED or (one.code == 0 and not one.said.get("changed"))]
    stage.promise("the other one is declined with a documented exit code", len(declined) == 1)
    stage.promise("the active site has nothing to take over", at_home.code == 0 and not at_home.said.get("changed"))
    stage.active = standby
    blows.heal(stage, fault)
    alone = call(stage, active, "takeover", "plan", "--to", active, "--accept-lost-site", standby).wait()
    stage.promise(f"{active} may not go on alone while {standby} answers", alone.code == 3)


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
