"""Carrying an act out: the story is driven, every step is told and noted, the report says what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import Epoch, Lsn, SiteName
from zerotail.core.takeover import Step, Strategy
from zerotail.deadline import Deadline
from zerotail.errors import Broken, Refused, Unavailable, Unfinished
from zerotail.flow.stage import Stage
from zerotail.operate.adapters import BadDayAdapters
from zerotail.operate.limits import STANDSTILL_SECONDS
from zerotail.operate.notebook import Note, Notebook, StepNote, now
from zerotail.operate.plan import COPY, REJOIN, STEP_NAMES, TAKEOVER, ActPlan, resume_line
from zerotail.operate.waiting import awaited, ended_at, told_regularly
from zerotail.postgres.tail import Tail

T = TypeVar("T")
Tell = Callable[[str, bool], None]
"""Hears of a step when it begins and when it is done."""
Say = Callable[[str], None]
"""Hears every few seconds what is waited for."""
_PAUSE_SECONDS = 0.2
"""Between two looks at a site that drains or catches up; a story counts its looks, so it has its patience from here.

A standby that was attached a moment ago starts, recovers, and may fail once to reach its primary: it needs many seconds
on a busy machine.
"""


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step, and how long it took."""

    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ActReport:
    """What an act did."""

    act: str
    site: SiteName
    other: SiteName
    plan: str
    changed: bool
    """False: there was nothing left to do."""
    epoch: Epoch
    exposed: bool
    """No other site confirms what is sent."""
    unfenced: bool = False
    """The other site was not shut off; the gate keeps it from releasing anything new."""
    replayed: int = 0
    strategy: Strategy = Strategy.SKIP
    refilled: int = 0
    """Records that were appended to the topics of the site."""
    read: int = 0
    """Records of these topics that were read before it went live."""
    accepted: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    tail: Tail | None = None
    gated_from: Lsn | None = None
    """Behind this position of the log nothing leaves any more before the other site has it; None: as it was."""
    remarks: tuple[str, ...] = ()
    note: str = ""
    """The folder with the notes of it."""
    seconds: float = 0.0

    def told_active(self) -> str:
        """Who is active now, in one line, with what must not be overlooked."""
        words = [f"{self.site} is active, epoch {self.epoch}, after {self.seconds:.1f} s"]
        words += ["EXPOSED: no other site confirms what is sent"] if self.exposed else []
        words += [f"{self.other} was not fenced"] if self.unfenced else []
        return "; ".join(words)


@dataclass(frozen=True, slots=True)
class Operator:
    """Who acts, with which configuration, and where it is noted."""

    configuration: Configuration
    notebook: Notebook
    name: str
    tell: Tell = lambda _step, _done: None
    say: Say = lambda _line: None


@dataclass(slots=True)
class Act:
    """An act under way: its note, its progress, its adapters."""

    operator: Operator
    plan: ActPlan
    note: Note
    deadline: Deadline
    adapters: BadDayAdapters | None = None
    tail: Tail | None = None
    gated_from: Lsn | None = None
    reports: list[StepReport] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    _step: tuple[str, float] | None = None
    _waits_for: tuple[str, float] = ("both sites", 0.0)
    """What is waited for, and since when it has come no nearer."""

    # What the adapters note.

    @property
    def folder(self) -> Path:
        """Where files are kept."""
        return self.operator.notebook.folder

    def step_done(self, epoch: Epoch, step: int) -> list[tuple[int, datetime]]:
        """Note a step in the file; all of this epoch."""
        known = {(one.epoch, one.step) for one in self.note.steps}
        if (epoch, step) not in known:
            self._write(steps=(*self.note.steps, StepNote(epoch, step, now())))
        return [(one.step, one.done_at) for one in self.note.steps if one.epoch == epoch]

    def stopping(self, position: Lsn | None) -> None:
        """Note up to where the log of the old primary reached before it was told to stop."""
        self._write(stopped_at=position)

    def kept(self, kept: Tail) -> None:
        """Note where a tail was kept."""
        self.tail = kept
        self._write(tail=kept.file)

    def remark(self, text: str) -> None:
        """Something that the operator should know; it goes into the report."""
        self.remarks.append(text)

    def finish(self) -> None:
        """Note that nothing is left."""
        self._write(finished_at=now())

    def _write(self, **changes: Any) -> None:
        self.note = msgspec.structs.replace(self.note, **changes)
        self.operator.notebook.write(self.note)

    # Driving a story.

    def open_logs(self, stages: Sequence[Stage]) -> None:
        """Have Kafka's clients ready when the story needs them."""
        self._adapters().open_logs(stages)

    def carry_through(self, story: ports.Story[T]) -> T:
        """Drive a story to its end, telling its steps."""
        adapters = self._adapters()
        answer: Any = None
        while True:
            try:
                effect = story.send(answer)
            except StopIteration as ended:
                self._end_step()
                result: T = ended.value
                return result
            if self.deadline.passed:
                raise self.out_of_time()
            if isinstance(effect, ports.Pause):
                answer = self._pause(effect)
                continue
            self._tell(effect)
            with self.operator.notebook.let_go() if isinstance(effect, ports.CopyDatabase) else nullcontext():
                answer = adapters.carry_out(effect)
            if isinstance(effect, ports.ChangeEpoch) and effect.durability is Durability.GATED:
                self.gated_from = answer.position if isinstance(answer, ports.Done) else None

    def _pause(self, effect: ports.Pause) -> ports.Late | None:
        """Between two looks; whoever waits for what comes no nearer has waited long enough at some time."""
        what, since = self._waits_for
        kind, _, _ = effect.reason.partition(":")
        waits_on = what.partition(":")[0] == kind and not effect.nearer
        since = since if waits_on else time.monotonic()
        self._waits_for = (effect.reason, since)
        if time.monotonic() - since >= STANDSTILL_SECONDS:
            return ports.Late()
        time.sleep(_PAUSE_SECONDS)
        return None

    def tell_waiting(self) -> None:
        """Say what is waited for, and until when at the latest."""
        what, since = self._waits_for
        step = f"{self._step[0]}: " if self._step else ""
        ends = datetime.now().astimezone() + timedelta(seconds=self.deadline.seconds_left)
        waited = time.monotonic() - (since or self.began)
        self.operator.say(f"{step}waits for {what} ({waited:.0f} s; it ends by {ends:%Y-%m-%d %H:%M:%S} at the latest)")

    def out_of_time(self) -> Unfinished:
        """It was not done by the deadline that its plan named."""
        plan, (what, _) = self.plan, self._waits_for
        return Unfinished(
            f"the {plan.act} was not done by its deadline, {plan.deadline_seconds:g} s after it began; it was waiting "
            f"for {what}.",
            code="ZT408",
            tries=(resume_line(plan),),
        )

    def _adapters(self) -> BadDayAdapters:
        if self.adapters is None:
            runs_at = self.note.other if self.note.act == REJOIN else self.note.site
            self.adapters = BadDayAdapters(self.operator.configuration, runs_at, self)
        return self.adapters

    def _tell(self, effect: ports.Effect) -> None:
        if isinstance(effect, ports.RecordStep):
            self._end_step()
            return
        name = _step_of(effect)
        what = awaited(effect)
        if what is not None and what != self._waits_for[0]:
            self._waits_for = (what, time.monotonic())
        if name is not None and (self._step is None or self._step[0] != name):
            self._end_step()
            self._step = (name, time.monotonic())
            self.operator.tell(name, False)

    def _end_step(self) -> None:
        if self._step is not None:
            name, began = self._step
            self._step = None
            self.reports.append(StepReport(name, round(time.monotonic() - began, 3)))
            self.operator.tell(name, True)


@contextmanager
def acting(
    operator: Operator,
    plan: ActPlan,
    accepted: tuple[str, ...],
    note: Note | None = None,
    *,
    strategy: Strategy | None = None,
    rebuild: bool = False,
) -> Iterator[Act]:
    """An act that is noted before it begins; `note` is that of an attempt that was interrupted."""
    with operator.notebook.locked(copies=plan.act != TAKEOVER):
        fresh = note is None
        begun = note or Note(plan.act, plan.site, plan.other, plan.id, operator.name, accepted, now())
        act = Act(
            operator,
            plan,
            msgspec.structs.replace(begun, strategy=strategy, rebuild=rebuild, epoch=max(begun.epoch, plan.epoch)),
            Deadline.after(plan.deadline_seconds),
        )
        operator.notebook.write(act.note)
        try:
            with told_regularly(act.tell_waiting), ended_at(act.deadline):
                yield act
        except (Refused, Unavailable, Unfinished, Broken) as error:
            if not act.reports and not isinstance(error, Unfinished):  # nothing was done yet
                if fresh:
                    act.finish()  # nothing is to be resumed
                raise
            if isinstance(error, Broken):
                resume = f"{resume_line(plan)}    # when that is mended"
                raise Broken(error.message, code=error.code, why=error.why, tries=(*error.tries, resume)) from error
            tries = error.tries or (resume_line(plan),)
            raise Unfinished(error.message, code=error.code, why=error.why, tries=tries) from error
        except KeyboardInterrupt:
            if act.deadline.passed:
                raise act.out_of_time() from None
            raise Unfinished(f"the {plan.act} was interrupted.", code="ZT460", tries=(resume_line(plan),)) from None
        finally:
            if act.adapters is not None:
                act.adapters.close()


def nothing_to_do(operator: Operator, plan: ActPlan, *, exposed: bool) -> ActReport:
    """The report of an act that found its work done; a note that was left open is closed."""
    note = operator.notebook.find_unfinished((plan.act,), plan.site)
    if note is not None:
        with operator.notebook.locked():
            operator.notebook.write(msgspec.structs.replace(note, finished_at=now()))
    return ActReport(plan.act, plan.site, plan.other, plan.id, False, plan.epoch, exposed)


def _step_of(effect: ports.Effect) -> str | None:
    """The step that an effect belongs to, as it is told."""
    match effect:
        case ports.FenceSite():
            return STEP_NAMES[Step.FENCE]
        case ports.Promote():
            return STEP_NAMES[Step.PROMOTE]
        case ports.StopWaiting():
            return STEP_NAMES[Step.STOP_WAITING]
        case ports.OpenEpoch():
            return STEP_NAMES[Step.OPEN_EPOCH]
        case ports.ReadJournal():
            return STEP_NAMES[Step.REBUILD]
        case ports.ReadLogEnd():
            return STEP_NAMES[Step.FILL]
        case ports.ClaimLane():
            return STEP_NAMES[Step.HANDSHAKE]
        case ports.ChangeEpoch(phase=Phase.LIVE):
            return STEP_NAMES[Step.GO_LIVE]
        case ports.ChangeEpoch(phase=Phase.DRAINING):
            return "drain"
        case ports.ShutDown():
            return "stop the old primary"
        case ports.KeepTail():
            return "keep the tail"
        case ports.RecordRejoined():
            return "note the return"
        case ports.CopyDatabase():
            return COPY
        case ports.ChangeEpoch(durability=Durability.GATED):
            return "back to gated"
        case _:
            return None
