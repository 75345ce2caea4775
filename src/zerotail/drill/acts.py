"""The acts of a drill's operator: roles change, sites come back. Every step is noted with its time."""

from __future__ import annotations

import time
from collections.abc import Callable

from zerotail.core.identity import Lsn, SiteName
from zerotail.core.takeover import Step
from zerotail.drill.example import SILENCE_SECONDS
from zerotail.drill.rehearsal import PATIENCE_SECONDS, Rehearsal, TimedStep
from zerotail.drill.running import Running
from zerotail.errors import Unfinished
from zerotail.operate.act import ActReport, Operator
from zerotail.operate.handover import plan_handover, run_handover
from zerotail.operate.plan import TAKEOVER
from zerotail.operate.rejoin import plan_rejoin, run_rejoin
from zerotail.operate.takeover import Statements, plan_takeover, run_takeover
from zerotail.operate.world import World, observe_world

HearStep = Callable[[str, bool], None]
"""Hears of a step when it begins and when it is done."""


def take_over(stage: Rehearsal, to: str, stated: Statements | None = None, hear: HearStep | None = None) -> None:
    """A site becomes the active one, or goes on alone if the other was stated to be out."""
    stated = stated or Statements()
    operator = _operator(stage, to, "takeover", hear)
    _asked(stage, f"takeover to {to} {' '.join(stated.flags)}".strip())
    world = _look(stage, operator, "takeover")
    planned = plan_takeover(operator.configuration, world, SiteName(to), stated)
    _done(stage, run_takeover(operator, planned, stated.flags), to)


def hand_over(stage: Rehearsal, to: str) -> None:
    """The active role moves, with nothing in doubt."""
    operator = _operator(stage, to, "handover")
    _asked(stage, f"handover to {to}")
    world = _look(stage, operator, "handover")
    stage.processes[stage.active].change_role()
    _done(stage, run_handover(operator, plan_handover(operator.configuration, world, SiteName(to)), ()), to)


def rejoin(stage: Rehearsal, site: str) -> None:
    """A lost site comes back as standby."""
    operator = _operator(stage, stage.active, "rejoin")
    stage.note("act", f"rejoin of {site}")
    world = _look(stage, operator, "rejoin")
    planned = plan_rejoin(operator.configuration, world, SiteName(site))
    accepted = () if world.of(SiteName(site)) is not None else (f"--accept-lost-database {site}",)
    report = run_rejoin(operator, planned, accepted)
    _gated(stage, report)
    stage.note("act", f"{site} is back as standby after {report.seconds:.1f} s")


def bring_back(stage: Rehearsal, site: str) -> None:
    """Everything of a site that was lost: its Kafka, its database as standby, its processes, warm."""
    stage.start_servers(f"{site}.kafka")
    rejoin(stage, site)
    stage.start_site(site, standby=True)
    stage.wait_until_warm(site)


def start_watcher(stage: Rehearsal) -> Running:
    """A watcher at the standby, which looks at the active site from now on."""
    watcher = stage.start_process(stage.standby, "watcher", "--state", str(stage.notebook().folder))
    stage.strays.append(watcher)
    watcher.wait_until_says(PATIENCE_SECONDS, "watching ")
    stage.note("start", f"{stage.standby}: a watcher takes over after {SILENCE_SECONDS:g} s of silence")
    return watcher


def wait_for_watcher(stage: Rehearsal, watcher: Running) -> None:
    """The watcher has taken over by itself; its notes say when it did what."""
    watcher.wait_until_says(PATIENCE_SECONDS, "is active, epoch")
    stage.active = watcher.site
    note = stage.notebook().find_last((TAKEOVER,))
    if note is None:
        raise Unfinished("the watcher has taken over, and there is no note of it.", code="ZT803")
    began = stage.asked_at = note.begun_at.timestamp()
    for done in note.steps:
        step, at = Step(done.step), done.done_at.timestamp()
        stage.steps.append(TimedStep("takeover", step.name.lower().replace("_", " "), began, at))
        began = at
        if step is Step.PROMOTE:
            stage.promoted_at = at
    stage.note("act", f"the watcher has taken over to {stage.active}")


def begin_again(stage: Rehearsal) -> None:
    """Ready for the next scene: the other site is a standby again, warm, and the business goes on."""
    stage.earlier_faults += stage.faults
    stage.faults, stage.events, stage.steps, stage.findings = [], [], [], []
    stage.fault_at = stage.asked_at = stage.promoted_at = None
    other = stage.standby
    running = stage.processes[other]
    if running.ended or not running.standby or not _is_attached(stage, other):
        running.end()
        bring_back(stage, other)
    else:
        stage.wait_until_warm(other)
    stage.business.start()


def _asked(stage: Rehearsal, what: str) -> None:
    """Note a command; the first one after the last fault is the one that counts."""
    at = stage.note("act", what)
    if stage.asked_at is None or stage.asked_at < (stage.fault_at or 0):
        stage.asked_at = at


def _is_attached(stage: Rehearsal, site: str) -> bool:
    """Whether a site is the standby, and the epoch gated."""
    configuration = stage.configuration(stage.active)
    return plan_rejoin(configuration, observe_world(configuration), SiteName(site)).shown.done


def _done(stage: Rehearsal, report: ActReport, to: str) -> None:
    stage.active = to
    _gated(stage, report)
    stage.note("act", f"{to} is active, epoch {report.epoch}, after {report.seconds:.1f} s")


def _gated(stage: Rehearsal, report: ActReport) -> None:
    stage.acts.append(report)
    if not report.exposed:
        stage.gated_at.setdefault(report.epoch, (time.time(), report.gated_from or Lsn(0)))


def _look(stage: Rehearsal, operator: Operator, act: str) -> World:
    began = time.time()
    world = observe_world(operator.configuration)
    stage.steps.append(TimedStep(act, "look at both sites", began, time.time()))
    return world


def _operator(stage: Rehearsal, site: str, act: str, hear: HearStep | None = None) -> Operator:
    began: dict[str, float] = {}

    def tell(step: str, done: bool) -> None:
        if not done:
            began[step] = time.time()
        else:
            at = stage.note("step", f"{step} done")
            stage.steps.append(TimedStep(act, step, began.get(step, at), at))
            if step == "promote" and (stage.promoted_at is None or stage.promoted_at < (stage.asked_at or 0)):
                stage.promoted_at = at
        if hear is not None:
            hear(step, done)

    return Operator(stage.configuration(site), stage.notebook(), "drill", tell)
