"""A disaster rehearsed on real processes: two sites, the example system, a business, a receiver as the judge.

A scenario (`scenarios.py`) says what happens; here is what it can do: start a site's processes, kill, freeze and thaw
it, change roles, wait until the outside hears of something new. Everything that happens is noted with its time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from zerotail.config import Configuration, load
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.business import Business
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.fault import FaultReport, continue_target, kill_target, stop_target
from zerotail.lab.layout import SITES, Layout
from zerotail.lab.process import session_members
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.operate.act import ActReport, Operator
from zerotail.operate.handover import plan_handover, run_handover
from zerotail.operate.notebook import Notebook
from zerotail.operate.rejoin import plan_rejoin, run_rejoin
from zerotail.operate.takeover import Statements, plan_takeover, run_takeover
from zerotail.operate.world import observe_world
from zerotail.postgres.connection import session
from zerotail.postgres.owed import observe_drained

CHANNEL, STAGE = "bank", "settle"
_PATIENCE_SECONDS = 120.0
Tell = Callable[[str], None]


class Event(msgspec.Struct, frozen=True):
    """Something that happened, in seconds since 1970."""

    at: float
    kind: str
    what: str


@dataclass(slots=True)
class Rehearsal:
    """The stage on which a scenario is played."""

    layout: Layout
    rate: float
    tell: Tell
    events: list[Event] = field(default_factory=list)
    faults: list[FaultReport] = field(default_factory=list)
    acts: list[ActReport] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    active: str = SITES[0]
    fault_at: float | None = None
    asked_at: float | None = None
    promoted_at: float | None = None

    @property
    def configurations(self) -> dict[SiteName, Configuration]:
        """As each site sees the world."""
        return {SiteName(site): load(self.config(site)) for site in SITES}

    @property
    def database(self) -> str:
        """The database of the active site."""
        return load(self.config(self.active)).sites[SiteName(self.active)].database.dsn.reveal()

    def config(self, site: str) -> Path:
        """The configuration of what runs in a site."""
        return self.layout.path / site / CONFIGURATION

    def note(self, kind: str, what: str) -> float:
        """Write down that something happens; when."""
        event = Event(time.time(), kind, what)
        self.events.append(event)
        self.tell(what)
        return event.at

    # Processes.

    def start_site(self, site: str, *, standby: bool = False) -> None:
        """Start a site's processes; with `standby` they wait, warm, for their turn."""
        command = [sys.executable, "-m", "zerotail", "run", "all", "--site", site, "--config", str(self.config(site))]
        with self._log(site).open("ab") as log:
            self.processes[site] = subprocess.Popen(
                [*command, *(["--standby"] if standby else [])],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.note("start", f"{site}: processes started{', waiting for their turn' if standby else ''}")

    def wait_until_says(self, site: str, *words: str) -> None:
        """Return when the processes of a site have said so."""
        wait_until(
            f"{site} says {' and '.join(words)}",
            lambda: all(word in self._log(site).read_text(errors="replace") for word in words),
            Deadline.after(_PATIENCE_SECONDS),
            every_seconds=0.1,
        )

    def signal_processes(self, site: str, number: signal.Signals) -> int:
        """Send a signal to every process of ours in a site; how many there are."""
        process = self.processes.get(site)
        if process is None or process.poll() is not None:
            return 0
        members = session_members(process.pid)
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(members)

    def end(self) -> None:
        """End whatever still runs."""
        for process in self.processes.values():
            for pid in session_members(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    # Faults.

    def kill_site(self, site: str) -> None:
        """Everything of a site at once: servers and our own processes."""
        count = self.signal_processes(site, signal.SIGKILL)
        report = kill_target(self.layout, site)
        self._bit(
            FaultReport(
                "site-loss",
                site,
                report.bit and count > 0,
                (f"{count} processes of ours killed", *report.evidence),
            )
        )

    def kill_part(self, part: str) -> None:
        """One server."""
        self._bit(kill_target(self.layout, part))

    def freeze_site(self, site: str) -> None:
        """A site that stands still, and may go on later."""
        count = self.signal_processes(site, signal.SIGSTOP)
        report = stop_target(self.layout, site)
        self._bit(FaultReport("freeze", site, report.bit, (f"{count} processes of ours stopped", *report.evidence)))

    def thaw_site(self, site: str) -> None:
        """The frozen site goes on, and does not know what happened meanwhile."""
        self.signal_processes(site, signal.SIGCONT)
        report = continue_target(self.layout, site)
        self.note("fault", f"{site} goes on: {'; '.join(report.evidence)}")

    def _bit(self, report: FaultReport) -> None:
        self.faults.append(report)
        self.fault_at = self.note("fault", f"{report.fault} {report.target}: {'; '.join(report.evidence)}")

    # Acts.

    def take_over(self, to: str) -> None:
        """The other site becomes the active one."""
        operator = self._operator(to)
        self.asked_at = self.note("act", f"takeover to {to}")
        world = observe_world(operator.configuration)
        planned = plan_takeover(operator.configuration, world, SiteName(to), Statements())
        self._done(run_takeover(operator, planned, ()), to)

    def hand_over(self, to: str) -> None:
        """The active role moves, with nothing in doubt."""
        operator = self._operator(to)
        self.asked_at = self.note("act", f"handover to {to}")
        world = observe_world(operator.configuration)
        self._done(run_handover(operator, plan_handover(operator.configuration, world, SiteName(to)), ()), to)

    def rejoin(self, site: str) -> None:
        """A lost site comes back as standby."""
        operator = self._operator(self.active)
        self.note("act", f"rejoin of {site}")
        world = observe_world(operator.configuration)
        planned = plan_rejoin(operator.configuration, world, SiteName(site))
        accepted = () if world.of(SiteName(site)) is not None else (f"--accept-lost-database {site}",)
        report = run_rejoin(operator, planned, accepted)
        self.acts.append(report)
        self.note("act", f"{site} is back as standby after {report.seconds:.1f} s")

    def _operator(self, site: str) -> Operator:
        def tell(step: str, done: bool) -> None:
            at = self.note("step", f"{step} {'done' if done else '…'}")
            if done and step == "promote":
                self.promoted_at = at

        return Operator(load(self.config(site)), Notebook(self.layout.path / "notes"), "drill", tell)

    def _done(self, report: ActReport, to: str) -> None:
        self.active = to
        self.acts.append(report)
        self.note("act", f"{to} is active, epoch {report.epoch}, after {report.seconds:.1f} s")

    # The outside.

    @property
    def receiver(self) -> ReceiverControl:
        """The control port of the judge."""
        return ReceiverControl(self.layout.receiver_control_port)

    def totals(self) -> list[PartitionTotals]:
        """What the receiver has, partition by partition."""
        found = self.receiver.totals(deadline=Deadline.after(30)).partitions
        return [one for one in found if one.channel == CHANNEL]

    def accepted(self) -> int:
        """How many messages the receiver has accepted."""
        return sum(one.accepted for one in self.totals())

    def wait_for_more(self, count: int) -> None:
        """Return when so many more messages were accepted."""
        before = self.accepted()
        wait_until(
            f"{count} more messages are accepted",
            lambda: self.accepted() >= before + count,
            Deadline.after(_PATIENCE_SECONDS),
            every_seconds=0.05,
        )

    @contextmanager
    def business(self) -> Iterator[Business]:
        """Instructions all the time."""
        business = Business(self.configurations, self.rate)
        business.start()
        try:
            yield business
        finally:
            business.stop()

    def drain(self) -> None:
        """Return when everything submitted is applied and everything owed is acknowledged."""
        with session(self.database, Deadline.after(_PATIENCE_SECONDS)) as connection:

            def drained() -> bool:
                left = observe_drained(connection)
                return not (left.instructions or left.emissions)

            wait_until("the flow is drained", drained, Deadline.after(_PATIENCE_SECONDS), every_seconds=0.1)

    def _log(self, site: str) -> Path:
        return self.layout.path / site / "run.log"


def prepare_example(layout: Layout) -> None:
    """Fit the example for a drill: zerotail numbers all instructions, since the business submits again what it got no
    answer for.
    """
    for site in SITES:
        path = layout.path / site / CONFIGURATION
        content: dict[str, Any] = yaml.safe_load(path.read_text())
        for producer in content["producers"].values():
            producer["serials"] = "numbered"
        # The scenario itself kills what is to be out; a second blow by a program of its own would only take time.
        del content["takeover"]["fence"]
        for channel in content["channels"].values():
            channel["batch"] = 1000
        path.write_text(yaml.safe_dump(content, sort_keys=False))
