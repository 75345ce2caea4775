"""A disaster rehearsed on real processes: two sites, the example system, a business, a receiver as the judge.

A scenario (`scenarios/`) says what happens. Here is the stage: the processes of both sites, which of them is active,
what the outside has. The blows that fall on it are in `blows.py`, the acts that change roles in `acts.py`. Everything
that happens is noted with its time.

1. A scenario speaks of the active site and the standby, never of east and west: it can begin with either.
2. What a scenario promises and does not hold is a finding, and the drill has failed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from zerotail.code import find_code_beside
from zerotail.config import Configuration, load
from zerotail.core.identity import Epoch, Lsn, SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.business import Business
from zerotail.drill.departure import Departure
from zerotail.drill.running import Running
from zerotail.errors import Unavailable, ZerotailError
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.fault import FaultReport, start_target
from zerotail.lab.layout import SITES, Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import Attempt, PartitionTotals
from zerotail.lab.site import other_site
from zerotail.operate.act import ActReport
from zerotail.operate.notebook import Notebook
from zerotail.operate.pipeline import transforms_of
from zerotail.postgres.connection import session
from zerotail.postgres.installation import read_installation
from zerotail.postgres.owed import observe_drained

CHANNEL, STAGE = "bank", "settle"
PATIENCE_SECONDS = 90.0
_WARM = "warm, until"
"""What the processes of a standby say when they are."""
_FIRST_RATE = 40.0
"""Until the first message is outside: a cold flow that meets a storm only shows how cold it was."""
_SLOW_RATE = 2.0
_SILENCE_SECONDS, _SILENT_WITHIN_SECONDS = 1.5, 8.0
Tell = Callable[[str], None]


class Event(msgspec.Struct, frozen=True):
    """Something that happened, in seconds since 1970."""

    at: float
    kind: str
    what: str


@dataclass(slots=True)
class Fault:
    """A blow that fell, and when it was taken back, if it was."""

    report: FaultReport
    at: float
    """When it was dealt."""
    fell_at: float
    """When it was seen to have fallen: what is given later is given after the fault."""
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class TimedStep:
    """One step of an act, for the time line."""

    act: str
    step: str
    began_at: float
    ended_at: float


@dataclass(slots=True)
class Rehearsal:
    """The stage on which a scenario is played."""

    layout: Layout
    rate: float
    seed: int
    history: Path
    """Where witnesses write."""
    tell: Tell
    count: int | None = None
    scale: float = 1.0
    """How many messages each wait for new ones wants, as a share of the usual number."""
    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    earlier_faults: list[Fault] = field(default_factory=list)
    """Of scenes that were played before on this stage."""
    acts: list[ActReport] = field(default_factory=list)
    steps: list[TimedStep] = field(default_factory=list)
    gated_at: dict[Epoch, tuple[float, Lsn]] = field(default_factory=dict)
    """When an epoch that was exposed went back behind the gate, and behind which position of the log that stands."""
    findings: list[str] = field(default_factory=list)
    """Promises that were not kept."""
    in_doubt: int = 0
    """Messages that were listed as doubts up to the end of the last scene."""
    processes: dict[str, Running] = field(default_factory=dict)
    strays: list[Running] = field(default_factory=list)
    """Processes that are not a site's own any more, or not its only ones."""
    departing: Departure | None = None
    """Who was at work at the old site when it went on."""
    producers: dict[str, int] = field(default_factory=dict)
    """The numbers of the producers, when the end was read."""
    active: str = SITES[0]
    installation: str = ""
    """The identity of the pair, once it has begun: another one may send to the same receiver."""
    fault: Fault | None = None
    """The one from which seconds count, else the last one."""
    asked_at: float | None = None
    promoted_at: float | None = None
    began: float = field(default_factory=time.monotonic)
    scene_at: float = field(default_factory=time.time)
    """When both sites were ready and the scene began, in seconds since 1970."""
    before: tuple[int, int] = (0, 0)
    """What had been acknowledged and had arrived at the end of the scene before."""
    random: random.Random = field(init=False)
    business: Business = field(init=False)

    def __post_init__(self) -> None:
        """Load what the business has to know of the example."""
        self.random = random.Random(self.seed)  # noqa: S311 - it chooses moments
        find_code_beside(self.config(SITES[0]))
        configurations = {SiteName(site): load(self.config(site)) for site in SITES}
        transforms = transforms_of(configurations[SiteName(SITES[0])])
        self.business = Business(configurations, transforms, _FIRST_RATE, self.count)

    @property
    def standby(self) -> str:
        """The site that is not active."""
        return other_site(self.active)

    @property
    def database(self) -> str:
        """The database of the active site."""
        return self.dsn(self.active)

    def dsn(self, site: str) -> str:
        """The database of a site."""
        return self.configuration(site).sites[SiteName(site)].database.dsn.reveal()

    def configuration(self, site: str) -> Configuration:
        """What runs in a site is configured so."""
        return load(self.config(site))

    def config(self, site: str) -> Path:
        """The configuration of what runs in a site."""
        return self.layout.path / site / CONFIGURATION

    def note(self, kind: str, what: str) -> float:
        """Write down that something happens; when."""
        event = Event(time.time(), kind, what)
        self.events.append(event)
        self.tell(what)
        return event.at

    def promise(self, what: str, kept: bool) -> None:
        """Something that must hold, and whether it did."""
        if not kept:
            self.findings.append(f"not kept: {what}")
        self.note("promise", f"{'kept' if kept else 'NOT KEPT'}: {what}")

    # Processes.

    def start_site(self, site: str, *, standby: bool = False) -> None:
        """Start a site's processes; with `standby` they wait, warm, for their turn."""
        self.processes[site] = self.start_process(site, "all", *(["--standby"] if standby else []))
        self.note("start", f"{site}: processes started{', waiting for their turn' if standby else ''}")

    def start_process(self, site: str, *words: str, more: Mapping[str, str] | None = None) -> Running:
        """One `zerotail run` at a site, with `more` in its environment."""
        return Running.start(self.layout.path, site, self.config(site), self.history, *words, more=more)

    def wait_until_warm(self, site: str) -> None:
        """Return when the processes of a standby could begin at once.

        Meanwhile the business goes slowly: both sites share one machine, and a start under load takes twice as long.
        """
        rate = self.business.rate
        self.business.rate = min(rate, _SLOW_RATE)
        try:
            self.processes[site].wait_until_says(PATIENCE_SECONDS, _WARM)
        finally:
            self.business.rate = rate

    def watch_departure(self, running: Running) -> Departure:
        """Look from now on when the processes of an old site are gone."""
        self.forget_departure()
        self.departing = Departure(running)
        return self.departing

    def forget_departure(self) -> None:
        """Look no longer."""
        if self.departing is not None:
            self.departing.close()
        self.departing = None

    def end(self) -> None:
        """End whatever of ours still runs."""
        self.business.stop()
        self.forget_departure()
        self.end_strays()
        for running in self.processes.values():
            running.end()

    def end_strays(self) -> None:
        """End what is not a site's own any more."""
        for stray in self.strays:
            stray.end()
        self.strays.clear()

    def start_servers(self, target: str) -> None:
        """Start what of a target is not running."""
        report = start_target(self.layout, target)
        self.note("heal", f"{target}: {'; '.join(report.evidence)}")

    def bit(self, report: FaultReport, began: float) -> Fault:
        """Note a blow that began then and has fallen now."""
        what = f"{report.fault} {report.target}: {'; '.join(report.evidence)}"
        self.events.append(Event(began, "fault", what))
        self.tell(what)
        self.fault = Fault(report, began, time.time())
        self.faults.append(self.fault)
        return self.fault

    def healed(self, fault: Fault, how: str) -> None:
        """Note that a blow was taken back."""
        fault.ended_at = self.note("heal", how)

    def notebook(self) -> Notebook:
        """Where the operator's acts are noted."""
        return Notebook(self.layout.path / "notes")

    # The outside.

    @property
    def receiver(self) -> ReceiverControl:
        """The control port of the judge."""
        return ReceiverControl(self.layout.receiver_control_port)

    def totals(self) -> list[PartitionTotals]:
        """What the receiver has, partition by partition."""
        return [one for one in self.totals_of_all() if self._is_ours(one.installation)]

    def totals_of_all(self) -> list[PartitionTotals]:
        """The same, of every installation."""
        found = self.receiver.totals(deadline=Deadline.after(30)).partitions
        return [one for one in found if one.channel == CHANNEL]

    def attempts(self) -> list[Attempt]:
        """Everything that this pair has tried at the receiver."""
        found = self.receiver.attempts(deadline=Deadline.after(PATIENCE_SECONDS))
        return [one for one in found if self._is_ours(one.installation)]

    def _is_ours(self, installation: str) -> bool:
        return self.installation in ("", installation)

    def accepted(self) -> int:
        """How many messages the receiver has accepted."""
        return sum(one.accepted for one in self.totals())

    def begin(self) -> None:
        """Start both sites and the business; return when messages flow."""
        with session(self.database, Deadline.after(PATIENCE_SECONDS)) as connection:
            self.installation = read_installation(connection).name
        self.start_site(self.active)
        self.start_site(self.standby, standby=True)
        self.processes[self.active].wait_until_says(PATIENCE_SECONDS, "running stage", "running producers")
        self.business.start()
        wait_until("the first message is outside", self.accepted, Deadline.after(PATIENCE_SECONDS), every_seconds=0.1)
        self.wait_until_warm(self.standby)
        self.business.rate = self.rate

    def wait_for_new(self, count: int) -> None:
        """Return when so many instructions that are given from now on are outside, or the business has no more."""
        wanted = self.business.acknowledged + max(1, int(count * self.scale))

        def arrived() -> bool:
            return self.accepted() >= wanted or (self.business.finished and self._is_drained())

        # At a low rate they are not even given any sooner.
        deadline = Deadline.after(PATIENCE_SECONDS + (wanted - self.accepted()) / self.business.rate)
        wait_until(f"{count} new messages are accepted", arrived, deadline, every_seconds=0.05)

    def wait_for_last(self) -> None:
        """Return when everything that was to be submitted is outside, however long that takes: a standstill is late."""
        seen, deadline = -1, Deadline.after(PATIENCE_SECONDS)
        while not (self.business.finished and self._is_drained()):
            now = self.business.acknowledged + self.accepted()
            if now != seen:
                seen, deadline = now, Deadline.after(PATIENCE_SECONDS)
            if deadline.passed:
                raise Unavailable(f"not in time: nothing has moved for {PATIENCE_SECONDS:g} s, and not all is outside")
            time.sleep(0.05)

    def falls_silent(self) -> bool:
        """Whether nothing is accepted any more, once what was on its way has arrived."""
        deadline, since, seen = Deadline.after(_SILENT_WITHIN_SECONDS), time.monotonic(), self.accepted()
        while time.monotonic() - since < _SILENCE_SECONDS:
            if deadline.passed:
                return False
            time.sleep(0.05)
            now = self.accepted()
            if now != seen:
                since, seen = time.monotonic(), now
        return True

    def drain(self) -> None:
        """Return when everything submitted is applied and everything owed is acknowledged."""
        wait_until("the flow is drained", self._is_drained, Deadline.after(PATIENCE_SECONDS), every_seconds=0.1)

    def _is_drained(self) -> bool:
        try:
            with session(self.database, Deadline.after(2)) as connection:
                left = observe_drained(connection)
        except ZerotailError:
            return False
        return not (left.instructions or left.emissions)
