"""Acts of a drill as processes of their own: killed at a step, resumed, or asked for by several operators at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from zerotail.core.identity import SiteName
from zerotail.core.takeover import WHOLE, Step
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.rehearsal import PATIENCE_SECONDS, Rehearsal, TimedStep
from zerotail.errors import Unfinished
from zerotail.lab.fault import FaultReport
from zerotail.lab.site import other_site
from zerotail.operate.plan import STEP_NAMES
from zerotail.operate.takeover import Statements, plan_takeover
from zerotail.operate.world import observe_world
from zerotail.postgres import lineage
from zerotail.postgres.connection import session
from zerotail.private import write_file

PROMOTE, CLAIM_LANES = STEP_NAMES[Step.PROMOTE], STEP_NAMES[Step.HANDSHAKE]
_NOWHERE = "http://127.0.0.1:9/"
"""Nobody listens there."""
TAKEOVER_STEPS = tuple(STEP_NAMES[step] for step in WHOLE)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    said: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that runs."""

    process: subprocess.Popen[bytes]

    def wait(self) -> Ended:
        """How it ended; one that does not end in time is ended."""
        try:
            out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.communicate()
            raise Unfinished(f"a command did not end within {PATIENCE_SECONDS:g} s.", code="ZT803") from error
        return Ended(self.process.returncode, json.loads(out) if out.strip() else {})


def call(
    rehearsal: Rehearsal, site: str, *words: str, state: Path | None = None, config: Path | None = None
) -> Command:
    """Start one `zerotail` command as an operator of a site would."""
    place = (
        "--config",
        str(config or rehearsal.config(site)),
        "--state",
        str(state or rehearsal.notebook().folder),
        "--json",
    )
    command = [sys.executable, "-m", "zerotail", *words, *place]
    return Command(
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    )


def ask_for_takeover(rehearsal: Rehearsal, site: str, plan: str, state: Path) -> Command:
    """Start `takeover run` with a plan that was seen before."""
    return call(rehearsal, site, "takeover", "run", "--to", site, "--plan", plan, "--confirm", site, state=state)


def go_on_alone(rehearsal: Rehearsal, site: str) -> None:
    """An operator states that the other site is out, and does not know better; returns when the epoch is opened.

    His site reaches nobody outside, so where lanes are to be claimed the command would wait: it is killed then.
    """
    alone = rehearsal.config(site).with_name("alone.yaml")
    content = yaml.safe_load(rehearsal.config(site).read_text())
    content["takeover"]["automatic"] = False
    for channel in content["channels"].values():
        channel |= {name: _NOWHERE for name in ("url", "last_number_url") if name in channel}
    write_file(alone, yaml.safe_dump(content, sort_keys=False))
    state = rehearsal.layout.path / "notes-alone"
    words = ("--to", site, "--accept-lost-site", other_site(site))
    plan = call(rehearsal, site, "takeover", "plan", *words, state=state, config=alone).wait()
    if plan.code:
        raise Unfinished(f"{site} could not go on alone: {plan.said.get('message')}", code="ZT803")
    stated = ("--plan", plan.said["id"], "--confirm", site)
    command = call(rehearsal, site, "takeover", "run", *words, *stated, state=state, config=alone)

    def is_opened() -> bool:
        with session(rehearsal.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
            return lineage.is_exposed(connection)

    wait_until(f"{site} goes on alone", is_opened, Deadline.after(PATIENCE_SECONDS))
    rehearsal.note("act", f"takeover to {site} {' '.join(words[2:])}: its epoch is opened")
    command.process.kill()
    command.process.communicate()


def plan_of_takeover(rehearsal: Rehearsal, site: str) -> str:
    """The id of the plan that `takeover plan` would print now."""
    configuration = rehearsal.configuration(site)
    return plan_takeover(configuration, observe_world(configuration), SiteName(site), Statements()).shown.id


def kill_takeover_at(rehearsal: Rehearsal, site: str, step: str, when: str) -> None:
    """Begin or resume a takeover in a process that is killed at a step."""
    place = ("--config", str(rehearsal.config(site)), "--state", str(rehearsal.notebook().folder), "--to", site)
    command = [sys.executable, "-m", "zerotail.drill.killed_act", "takeover", *place, "--step", step, "--when", when]
    began = rehearsal.note("act", f"takeover to {site}, to be killed at “{step}”, {when}")
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    bit = ended.returncode == -signal.SIGKILL
    place_told = "before" if when == "begin" else "behind"
    killed = FaultReport("takeover-killed", f"{place_told} {step}", bit, (f"it ended with {ended.returncode}",))
    fault = rehearsal.bit(killed, time.time())
    rehearsal.steps.append(TimedStep(f"takeover to {site}, killed", f"{place_told} {step}", began, fault.at))
    if bit and (step, when) == (PROMOTE, "done"):
        rehearsal.promoted_at = fault.at  # it died behind the promotion and could not note it


def resume_takeover(rehearsal: Rehearsal, site: str) -> Ended:
    """`takeover resume`, to its end."""
    began = rehearsal.note("act", f"takeover to {site} is resumed")
    ended = call(rehearsal, site, "takeover", "resume").wait()
    rehearsal.steps.append(TimedStep(f"takeover to {site}", "resume", began, rehearsal.note("step", "resume done")))
    return ended
