"""The acts of a drill's operator: roles change, sites come back. Every step is noted with its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from zerotail.config import Configuration
from zerotail.core.identity import Lsn, SiteName
from zerotail.core.takeover import Step
from zerotail.deadline import Deadline
from zerotail.drill.commands import PROMOTE
from zerotail.drill.example import SILENCE_SECONDS
from zerotail.drill.rehearsal import PATIENCE_SECONDS, Rehearsal, TimedStep
from zerotail.drill.running import Running
from zerotail.errors import Refused, Unfinished
from zerotail.operate.act import ActReport, Operator, Tell
from zerotail.operate.handover import plan_handover, run_handover
from zerotail.operate.notebook import Note
from zerotail.operate.plan import STEP_NAMES, TAKEOVER
from zerotail.operate.rejoin import plan_rejoin, run_rejoin
from zerotail.operate.takeover import Statements, plan_takeover, run_takeover
from zerotail.operate.world import World, observe_world

STATEMENTS_LOGGED = {"PGOPTIONS": "-c log_statement=all"}
"""In the environment of a process: its databases write down what it asks them."""
ASKS_FOR_SILENCE = "last_msg_receipt_time"
"""Stands in what a watcher asks its own database, when the other one does not answer: how long the log is silent."""
_NOTICED_SECONDS = 15.0


def take_over(rehearsal: Rehearsal, to: str, stated: Statements | None = None, hear: Tell | None = None) -> None:
    """A site becomes the active one, or goes on alone if the other was stated to be out."""
    stated = stated or Statements()
    title = f"takeover to {to}"
    operator = _operator(rehearsal, to, title, hear)
    if stated.lost_site is not None:
        operator = replace(operator, configuration=_without_watcher(operator.configuration))
    _asked(rehearsal, f"takeover to {to} {' '.join(stated.flags)}".strip())
    world = _look(rehearsal, operator, title)
    planned = plan_takeover(operator.configuration, world, SiteName(to), stated)
    _done(rehearsal, run_takeover(operator, planned, stated.flags), to)


def _without_watcher(configuration: Configuration) -> Configuration:
    """As it is where nobody takes over by himself: no watcher is at work in these scenes, and nobody is shut off."""
    takeover = configuration.takeover.model_copy(update={"automatic": False})
    return configuration.model_copy(update={"takeover": takeover})


def refusal_of_takeover(rehearsal: Rehearsal, to: str, stale_after: timedelta | None = None) -> str:
    """With which number a takeover is refused; empty when it would go through. Nothing is changed."""
    configuration = rehearsal.configuration(to)
    if stale_after is not None:
        takeover = configuration.takeover.model_copy(update={"stale_after": stale_after})
        configuration = configuration.model_copy(update={"takeover": takeover})
    world = observe_world(configuration, ask_receivers=True)
    return _refusal(rehearsal, lambda: plan_takeover(configuration, world, SiteName(to), Statements()))


def refusal_of_rejoin(rehearsal: Rehearsal, site: str) -> str:
    """With which number a rejoin is refused; empty when it would go through. Nothing is changed."""
    configuration = rehearsal.configuration(rehearsal.active)
    world = observe_world(configuration)
    return _refusal(rehearsal, lambda: plan_rejoin(configuration, world, SiteName(site)))


def _refusal(rehearsal: Rehearsal, plan: Callable[[], object]) -> str:
    try:
        plan()
    except Refused as refused:
        rehearsal.note("act", f"refused: {refused.code} {refused.message}")
        return refused.code
    return ""


def hand_over(rehearsal: Rehearsal, to: str) -> None:
    """The active role moves, with nothing in doubt."""
    title = f"handover to {to}"
    operator = _operator(rehearsal, to, title)
    _asked(rehearsal, title)
    world = _look(rehearsal, operator, title)
    rehearsal.processes[rehearsal.active].change_role()
    _done(rehearsal, run_handover(operator, plan_handover(operator.configuration, world, SiteName(to)), ()), to)


def rejoin(rehearsal: Rehearsal, site: str, hear: Tell | None = None) -> None:
    """A lost site comes back as standby."""
    title = f"rejoin of {site}"
    operator = _operator(rehearsal, rehearsal.active, title, hear)
    rehearsal.note("act", title)
    world = _look(rehearsal, operator, title)
    planned = plan_rejoin(operator.configuration, world, SiteName(site))
    accepted = () if world.of(SiteName(site)) is not None else (f"--accept-lost-database {site}",)
    report = run_rejoin(operator, planned, accepted)
    _gated(rehearsal, report)
    if report.tail is not None:
        rehearsal.note("tail", report.tail.told())
    rehearsal.note("act", f"{site} is back as standby after {report.seconds:.1f} s")


def bring_back(rehearsal: Rehearsal, site: str) -> None:
    """Everything of a site that was lost: its Kafka, its database as standby, its processes, warm."""
    rehearsal.start_servers(f"{site}.kafka")
    rejoin(rehearsal, site)
    rehearsal.start_site(site, standby=True)
    rehearsal.wait_until_warm(site)


def start_watcher(rehearsal: Rehearsal, *, heard: bool = False) -> Running:
    """A watcher at the standby, which looks at the active site from now on; `heard`: its looks can be counted."""
    words = ("watcher", "--state", str(rehearsal.notebook().folder))
    watcher = rehearsal.start_process(rehearsal.standby, *words, more=STATEMENTS_LOGGED if heard else None)
    rehearsal.strays.append(watcher)
    watcher.wait_until_says(PATIENCE_SECONDS, "watching ")
    rehearsal.note("start", f"{rehearsal.standby}: a watcher takes over after {SILENCE_SECONDS:g} s of silence")
    return watcher


def wait_until_noticed(rehearsal: Rehearsal, watcher: Running, looks: int, before: int) -> bool:
    """Whether a watcher has found the other site silent at so many looks since it had done so `before` times."""
    deadline = Deadline.after(_NOTICED_SECONDS)
    while not (noticed := silent_looks(rehearsal, watcher) >= before + looks) and not deadline.passed:
        time.sleep(0.02)
    return noticed


def silent_looks(rehearsal: Rehearsal, watcher: Running) -> int:
    """How often a watcher found the other site silent, by the log of its own database."""
    return (
        (rehearsal.layout.folder_of(f"{watcher.site}.postgres") / "log").read_bytes().count(ASKS_FOR_SILENCE.encode())
    )


def wait_for_watcher(rehearsal: Rehearsal, watcher: Running) -> None:
    """The watcher has taken over by itself; its notes say when it did what."""
    watcher.wait_until_says(PATIENCE_SECONDS, "is active, epoch")
    rehearsal.active = watcher.site
    note = rehearsal.notebook().find_last((TAKEOVER,))
    if note is None:
        raise Unfinished("the watcher has taken over, and there is no note of it.", code="ZT803")
    rehearsal.asked_at = note.begun_at.timestamp()
    take_steps(rehearsal, note)
    rehearsal.note("act", f"the watcher has taken over to {rehearsal.active}")


def take_steps(rehearsal: Rehearsal, note: Note) -> None:
    """The steps of a takeover that another process carried out, by its note."""
    began = note.begun_at.timestamp()
    for done in note.steps:
        step, at = Step(done.step), done.done_at.timestamp()
        rehearsal.steps.append(TimedStep(f"takeover to {note.site}", STEP_NAMES[step], began, at))
        began = at
        if step is Step.PROMOTE:
            rehearsal.promoted_at = at


def begin_again(rehearsal: Rehearsal) -> None:
    """Ready for the next scene: the other site is a standby again, warm, and the business goes on."""
    rehearsal.earlier_faults += rehearsal.faults
    rehearsal.faults, rehearsal.events, rehearsal.steps, rehearsal.findings = [], [], [], []
    rehearsal.fault = rehearsal.asked_at = rehearsal.promoted_at = None
    rehearsal.forget_departure()
    other = rehearsal.standby
    running = rehearsal.processes[other]
    if running.ended or not running.standby or not _is_attached(rehearsal, other):
        running.end()
        bring_back(rehearsal, other)
    else:
        rehearsal.wait_until_warm(other)
    rehearsal.business.start()


def _asked(rehearsal: Rehearsal, what: str) -> None:
    """Note a command; the first one after the last fault is the one that counts."""
    at = rehearsal.note("act", what)
    if rehearsal.asked_at is None or (rehearsal.fault is not None and rehearsal.asked_at < rehearsal.fault.at):
        rehearsal.asked_at = at


def _is_attached(rehearsal: Rehearsal, site: str) -> bool:
    """Whether a site is the standby, and the epoch gated."""
    configuration = rehearsal.configuration(rehearsal.active)
    return plan_rejoin(configuration, observe_world(configuration), SiteName(site)).shown.done


def _done(rehearsal: Rehearsal, report: ActReport, to: str) -> None:
    rehearsal.active = to
    _gated(rehearsal, report)
    rehearsal.note("act", report.told_active())


def _gated(rehearsal: Rehearsal, report: ActReport) -> None:
    rehearsal.acts.append(report)
    if not report.exposed:
        rehearsal.gated_at.setdefault(report.epoch, (time.time(), report.gated_from or Lsn(0)))


def _look(rehearsal: Rehearsal, operator: Operator, act: str) -> World:
    began = time.time()
    world = observe_world(operator.configuration)
    rehearsal.steps.append(TimedStep(act, "look at both sites", began, time.time()))
    return world


def _operator(rehearsal: Rehearsal, site: str, act: str, hear: Tell | None = None) -> Operator:
    began: dict[str, float] = {}

    def tell(step: str, done: bool) -> None:
        if not done:
            began[step] = time.time()
        else:
            at = rehearsal.note("step", f"{step} done")
            rehearsal.steps.append(TimedStep(act, step, began.get(step, at), at))
            if step == PROMOTE and (rehearsal.promoted_at is None or rehearsal.promoted_at < (rehearsal.asked_at or 0)):
                rehearsal.promoted_at = at
        if hear is not None:
            hear(step, done)

    return Operator(rehearsal.configuration(site), rehearsal.notebook(), "drill", tell)
