"""Handover and failback: the active site gives its role to the other one and comes back as its standby.

    drain   stop the old primary   promote … go live   (`failover/handover.py`)   then rejoin of the old site

Interrupted before the old primary was told to stop, a handover begins anew. After that the note says how far its log
reached: the target must hold that much, and takes over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zerotail.config import Configuration
from zerotail.core import takeover as plans
from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import Epoch, Lsn, SiteName
from zerotail.core.takeover import SiteView
from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable, Unfinished
from zerotail.failover.handover import hand_over
from zerotail.failover.rejoin import follows, rejoin
from zerotail.failover.takeover import TakeoverReport, take_over
from zerotail.operate.act import Act, ActReport, Operator, acting, nothing_to_do
from zerotail.operate.limits import limits_of_handover
from zerotail.operate.notebook import Note
from zerotail.operate.plan import HANDOVER, TAKEOVER, ActPlan, make_plan, require_accepted
from zerotail.operate.rejoin import require_command
from zerotail.operate.takeover import nothing_begun, pipeline_at, strategy_of
from zerotail.operate.world import World
from zerotail.ports import SiteObserved, Standing
from zerotail.postgres import shutdown

_END_SECONDS = 15.0
"""A standby that is slow may have to apply much before it comes to the end of the log."""


@dataclass(frozen=True, slots=True)
class PlannedHandover:
    """A plan as it is shown."""

    shown: ActPlan
    exposed: bool
    number: int
    """Of the target, in epochs."""


def plan_handover(configuration: Configuration, world: World, target: SiteName, act: str = HANDOVER) -> PlannedHandover:
    """What would move the active role to `target`."""
    source = configuration.other_site(target)
    here = world.of(target)
    told = (world.told(source), world.told(target))
    numbers = {} if here is None else world.require_numbers(target)
    if here is not None and world.find_active() == target and here.standing.live_at(target):
        row = here.standing.lineage.current
        shown = make_plan(act, target, source, row.epoch, seen=told, steps=())
        return PlannedHandover(shown, row.durability is Durability.EXPOSED, numbers[target])
    there = world.of(source)
    if here is None or there is None:
        silent = target if here is None else source
        if world.answers(silent):
            raise world.why_silent(silent)
        raise Unavailable(
            f"a handover needs both databases, and that of {silent} does not answer.",
            code="ZT420",
            tries=(f"zerotail takeover plan --to {target}",),
        )
    world.require_end(source)
    row = there.standing.lineage.current
    if not there.standing.live_at(source) or row.durability is Durability.EXPOSED:
        raise Refused(
            f"{source} is not active with a standby that is in step.",
            code="ZT434",
            why="\n".join(told),
            tries=(f"zerotail rejoin plan --site {target}",),
        )
    if not follows(here, there):
        raise Refused(
            f"{target} is not the standby of {source}.",
            code="ZT435",
            why="\n".join(told),
            tries=(f"zerotail rejoin plan --site {target}",),
        )
    world.require_rights(source)
    world.require_rights(target, promotes=configuration.takeover.promote is None)
    world.require_commits(source, target, follows=True)
    require_command(configuration.takeover.stop, "stop")
    require_command(configuration.takeover.attach, "attach")
    view = SiteView(target, numbers[target], here.standing.lineage, here.standing.timeline)
    epoch = plans.plan_takeover(view, cause="handover").epoch
    steps = (
        f"drain: {source} takes nothing new, not by SQL either, until everything is applied and acknowledged",
        f"stop the old primary: the database of {source}, cleanly",
        f"take over: epoch {epoch} at {target}",
        f"rejoin: {source} comes back as standby, by a fresh copy",
    )
    limits = limits_of_handover(configuration, strategy_of(configuration))
    shown = make_plan(act, target, source, epoch, seen=told, steps=steps, limits=limits)
    return PlannedHandover(shown, False, numbers[target])


def run_handover(operator: Operator, planned: PlannedHandover, accepted: tuple[str, ...]) -> ActReport:
    """Carry the plan out."""
    plan = planned.shown
    if plan.done:
        return nothing_to_do(operator, plan, exposed=planned.exposed)
    require_accepted(plan, accepted)
    pipeline, began = pipeline_at(operator.configuration, plan.site), time.monotonic()
    with acting(operator, plan, accepted) as act:
        report = act.carry_through(hand_over(pipeline, plan.other, plan.site, planned.number))
        _bring_back(act, plan.other, plan.site)
        act.finish()
    return _report(operator, act, report, began)


def resume_handover(operator: Operator, world: World, target: SiteName | None, act_name: str = HANDOVER) -> ActReport:
    """Finish what an interrupted handover began; `Refused` when none was begun."""
    note = operator.notebook.find_unfinished((act_name,), target)
    if note is None:
        last = operator.notebook.find_last((act_name,), target)
        if last is not None and world.is_live(last.site):
            return nothing_to_do(
                operator, plan_handover(operator.configuration, world, last.site, act_name).shown, exposed=False
            )
        raise nothing_begun(act_name, target)
    source, here = note.other, world.require(note.site)
    if note.stopped_at is None or world.is_live(source):
        # The old primary goes on, or was started again: from the beginning.
        planned = plan_handover(operator.configuration, world, note.site, act_name)
        return run_handover(operator, planned, note.accepted)
    if here.flushed < _end_of(operator.configuration, note, here):
        raise Unfinished(
            f"{note.site} lacks the end of the log of {source}; start the database of {source} again.", code="ZT422"
        )
    _require_drained(note, here.standing, operator.notebook.find_last((TAKEOVER,), source))
    return _finish(operator, note, here.standing.epoch, world.require_numbers(note.site)[note.site])


def _end_of(configuration: Configuration, note: Note, here: SiteObserved) -> Lsn:
    """Up to where the log of the old primary reached; asked of the copy again while that is one.

    It is noted before the stop and behind it: an act may have been killed in between.
    """
    noted = note.stopped_at or Lsn(0)
    if here.standing.timeline is not None:
        return noted
    try:
        return shutdown.find_end(configuration.sites[note.site].database.dsn.reveal(), Deadline.after(_END_SECONDS))
    except Refused:  # whoever acts has no right to ask
        return noted


def _require_drained(note: Note, standing: Standing, takeover: Note | None) -> None:
    """`Refused` when the old primary has gone on since it was told to stop: then nobody knows what it holds alone.

    The copy that drained says so where it followed; where it did not, the notes do: `takeover` is the last one there.
    """
    row = standing.lineage.current
    why = ""
    if standing.timeline is None and row.phase is not Phase.DRAINING:
        why = f"The copy at {note.site} says that epoch {row.epoch} of {row.site} is {row.phase.value}, not drained."
    if takeover is not None and takeover.begun_at > note.begun_at:
        why = f"It was made the active site again at {takeover.begun_at:%Y-%m-%d %H:%M:%S%z}, by {takeover.operator}."
    if why:
        raise Refused(
            f"{note.other} has gone on since it was told to stop, and does not answer.",
            code="ZT426",
            why=why,
            tries=(f"zerotail takeover plan --to {note.site}",),
        )


def _finish(operator: Operator, note: Note, epoch: Epoch, number: int) -> ActReport:
    """The old primary is down and the target holds its log: take over, and bring the old site back."""
    configuration, began = operator.configuration, time.monotonic()
    limits = limits_of_handover(configuration, strategy_of(configuration))
    seconds = sum(limit.seconds for limit in limits)
    plan = ActPlan(note.act, note.site, note.other, note.plan, False, epoch, (), (), (), (), (), limits, seconds)
    with acting(operator, plan, note.accepted, note) as act:
        pipeline = pipeline_at(configuration, note.site)
        report = act.carry_through(take_over(pipeline, note.site, number, note.other, cause="handover"))
        _bring_back(act, note.other, note.site)
        act.finish()
    return _report(operator, act, report, began)


def _bring_back(act: Act, source: SiteName, target: SiteName) -> None:
    """The old site becomes the standby. It was stopped by us and the target holds its log: it counts as lost."""
    act.carry_through(rejoin(source, target, database_lost=True))


def _report(operator: Operator, act: Act, report: TakeoverReport, began: float) -> ActReport:
    note = act.note
    return ActReport(
        note.act,
        note.site,
        note.other,
        note.plan,
        True,
        report.plan.epoch,
        False,
        replayed=report.replayed,
        strategy=strategy_of(operator.configuration),
        refilled=report.refilled,
        read=report.read,
        accepted=note.accepted,
        steps=tuple(act.reports),
        tail=act.tail,
        gated_from=act.gated_from,
        remarks=tuple(act.remarks),
        note=str(operator.notebook.folder),
        seconds=round(time.monotonic() - began, 3),
    )
