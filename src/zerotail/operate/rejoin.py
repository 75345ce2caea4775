"""Rejoin: a lost site comes back as standby; its tail is kept, its database replaced, the epoch gated again."""

from __future__ import annotations

import time
from dataclasses import dataclass

from zerotail.config import Configuration
from zerotail.core.completeness import require_replaceable
from zerotail.core.epoch import Durability
from zerotail.core.identity import SiteName
from zerotail.errors import Refused
from zerotail.failover.rejoin import follows_on, rejoin, require_nothing_released, require_verified
from zerotail.operate.act import ActReport, Operator, acting, nothing_to_do
from zerotail.operate.limits import limits_of_rejoin
from zerotail.operate.plan import COPY, REJOIN, ActPlan, make_plan, require_accepted
from zerotail.operate.world import NOT_OURS, World


@dataclass(frozen=True, slots=True)
class PlannedRejoin:
    """A plan as it is shown, and whether the database counts as lost."""

    shown: ActPlan
    database_lost: bool
    loss: bool = False
    """Whether something that was released is lost with the copy, by the operator's will."""


def plan_rejoin(
    configuration: Configuration, world: World, site: SiteName, *, accept_loss: bool = False
) -> PlannedRejoin:
    """What would bring `site` back as the standby of the other one."""
    active = configuration.other_site(site)
    there = world.require(active)
    standing = there.standing
    world.require_numbers(active)
    more = world.surplus.get(site)
    if more is not None:
        require_replaceable(site, active, more, accept_loss=accept_loss)
    loss = more is not None and not more.nothing
    seen = world.of(site)
    if seen is not None and world.told_histories():
        require_nothing_released(site, seen.standing, standing)
    working = world.find_active()
    if working != active:
        what = f"{working} is the active site" if working else world.told_histories() or f"{active} is not active"
        raise Refused(
            f"{site} cannot come back as standby of {active}: {what}.", code="ZT433", tries=["zerotail takeover status"]
        )
    if seen is None:
        _require_no_answer(world, site)
    exposed = standing.lineage.current.durability is Durability.EXPOSED
    if seen is not None:
        world.require_end(active)
        require_verified(site, seen, active, there)
    attached = seen is not None and follows_on(seen, there, more)
    steps: list[str] = []
    needs: list[str] = []
    world.require_rights(active)
    if not exposed:  # else they are made to wait for the site when it is back
        world.require_commits(active, site, follows=attached)
    if not attached:
        world.require_rights(site, keeps_tail=True)
        require_command(configuration.takeover.attach, "attach")
        if seen is None:
            needs.append(f"--accept-lost-database {site}")
        else:
            require_nothing_released(site, seen.standing, standing)
            needs += [f"--accept-loss {site}"] if loss else []
            lost = ", and some of it was released" if loss else ""
            steps.append(f"keep the tail: what only {site} has, in a file; it is never applied{lost}")
        steps.append(f"note the return: topics of {site} get names with epoch {standing.epoch}")
        meanwhile = "" if exposed else _meanwhile(site, active)
        steps.append(f"{COPY}: replace that of {site} by a fresh copy of {active}'s{meanwhile}")
    if exposed:
        steps.append(f"back to gated: nothing leaves {active} any more before {site} has it")
    told = (world.told(active), world.told(site), *(more.told(site, active) if more is not None and loss else ()))
    limits = limits_of_rejoin(copies=not attached, keeps=seen is not None, gates=exposed)
    shown = make_plan(
        REJOIN, site, active, standing.epoch, seen=told, steps=tuple(steps), needs=tuple(needs), limits=limits
    )
    return PlannedRejoin(shown, database_lost=seen is None, loss=loss)


def run_rejoin(operator: Operator, planned: PlannedRejoin, accepted: tuple[str, ...]) -> ActReport:
    """Carry the plan out."""
    plan = planned.shown
    if plan.done:
        return nothing_to_do(operator, plan, exposed=False)
    require_accepted(plan, accepted)
    began = time.monotonic()
    with acting(operator, plan, accepted) as act:
        story = rejoin(plan.site, plan.other, database_lost=planned.database_lost, accept_loss=planned.loss)
        changed = act.carry_through(story)
        act.finish()
    return ActReport(
        plan.act,
        plan.site,
        plan.other,
        plan.id,
        changed,
        plan.epoch,
        False,
        accepted=accepted,
        steps=tuple(act.reports),
        tail=act.tail,
        gated_from=act.gated_from,
        remarks=tuple(act.remarks),
        note=str(operator.notebook.folder),
        seconds=round(time.monotonic() - began, 3),
    )


def _meanwhile(site: SiteName, active: SiteName) -> str:
    """A copy may take hours, and the gate is closed as long (E22)."""
    alone = f"zerotail takeover plan --to {active} --accept-lost-site {site}"
    return f"; nothing leaves {active} until that is done, unless it goes on alone first: {alone}"


def _require_no_answer(world: World, site: SiteName) -> None:
    """`Refused` when the database is there and only we are not let in: what it holds can be looked at, and must be. One
    without our tables holds nothing of ours.
    """
    why = world.silence.get(site)
    if world.answers(site) and why is not None and why.code != NOT_OURS:
        raise Refused(
            f"the database of {site} is there, and nobody has seen what it holds.",
            code="ZT316",
            why=why.message,
            tries=(*why.tries, f"zerotail rejoin plan --site {site}    # when it lets us in, or is stopped"),
        )


def require_command(words: tuple[str, ...] | None, name: str) -> None:
    """`Refused` when a command is needed that is not configured."""
    if words is None:
        raise Refused(
            f"no command to {name} a database is configured.",
            code="ZT454",
            why="Only the operator knows how that is done at these sites.",
            tries=(f'takeover: {{{name}: [PROGRAM, "{{site}}", "{{other}}"]}}    # in the configuration',),
        )
