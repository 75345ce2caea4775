"""A second installation beside the one that is rehearsed: a database of its own in the same servers, the same topics,
the same channel of the same receiver. Nobody meant that: somebody copied a configuration and changed one word of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.core.receiver import ReceiverClass
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.business import Business
from zerotail.drill.rehearsal import PATIENCE_SECONDS, STAGE, Rehearsal
from zerotail.drill.running import Running
from zerotail.errors import Unfinished
from zerotail.lab.example import CONFIGURATION, HANDLERS
from zerotail.lab.fault import FaultReport
from zerotail.lab.receiver.protocol import Verdict
from zerotail.postgres.connection import one_row, session
from zerotail.postgres.installation import read_installation
from zerotail.private import make_folder, write_file
from zerotail.status.processes import OTHER_INSTALLATION

COUNT = 100
"""Instructions of the second installation."""
_DATABASE = "stranger"
_HISTORY = "history"
"""Its senders write down what they send, which is no business of our judges."""
_RATE = 40.0
_LEFT_OUT = f"""
select coalesce(sum((counters ->> '{OTHER_INSTALLATION}')::bigint), 0)::bigint from zerotail.process
 where role = 'stage' and site = %s
"""
_APPLIED = "select coalesce(sum(next_position), 0)::bigint from zerotail.head where stage = %s"


@dataclass(frozen=True, slots=True)
class Stranger:
    """A second installation that is at work."""

    installation: str
    running: Running
    business: Business
    dsn: str

    def applied(self) -> int:
        """Records that its stage has taken."""
        with session(self.dsn, Deadline.after(PATIENCE_SECONDS)) as connection:
            return int(one_row(connection, _APPLIED, (STAGE,))[0])


def begin(rehearsal: Rehearsal) -> Stranger:
    """Make it, at the active site, and let its business begin."""
    site = rehearsal.active
    config = _configure(rehearsal, site)
    _make_database(rehearsal.database)
    command = [sys.executable, "-m", "zerotail", "schema", "apply", "--first-epoch", "--site", site]
    applied = subprocess.run([*command, "--config", str(config)], capture_output=True, text=True, check=False)
    if applied.returncode:
        raise Unfinished(f"a second installation could not begin: {applied.stderr.strip()}", code="ZT803")
    configuration = load(config)
    dsn = configuration.sites[SiteName(site)].database.dsn.reveal()
    with session(dsn, Deadline.after(PATIENCE_SECONDS)) as connection:
        installation = read_installation(connection).name
    running = Running.start(rehearsal.layout.path, site, config, config.parent / _HISTORY, "all")
    rehearsal.strays.append(running)
    rehearsal.note("start", f"{site}: a second installation, {installation}, on the same topics and the same channel")
    running.wait_until_says(PATIENCE_SECONDS, "running stage", "running producers")
    business = Business({SiteName(site): configuration}, rehearsal.business.transforms, _RATE, COUNT)
    business.start()
    return Stranger(installation, running, business, dsn)


def meets(rehearsal: Rehearsal, stranger: Stranger) -> FaultReport:
    """Wait until both installations have met each other's records, and both have met the receiver."""
    deadline = Deadline.after(PATIENCE_SECONDS)
    wait_until("the other installation has taken what is its own", lambda: stranger.applied() >= COUNT, deadline)
    ours = wait_until(
        "records of the other one are left out", lambda: _left_out(rehearsal, rehearsal.database), deadline
    )
    theirs = wait_until("and ours by that one", lambda: _left_out(rehearsal, stranger.dsn), deadline)
    shared = ReceiverClass(rehearsal.layout.receiver_class) not in (ReceiverClass.R0, ReceiverClass.R2)

    def met() -> int:
        accepted, refused = _answered(rehearsal, stranger)
        return accepted >= COUNT if shared else refused

    wait_until("the receiver has met both", met, deadline, every_seconds=0.5)
    accepted, refused = _answered(rehearsal, stranger)
    evidence = (
        f"{ours:,} records of installation {stranger.installation} were left out here, {theirs:,} of ours there",
        f"the receiver took {accepted:,} messages of it, and refused it {refused:,} times",
    )
    return FaultReport("second-installation", rehearsal.active, ours > 0 and theirs > 0, evidence)


def promise_apart(rehearsal: Rehearsal, stranger: Stranger) -> None:
    """The second one has what is its own and nothing else, and lives; ours is what the judges look at."""
    accepted, refused = _answered(rehearsal, stranger)
    shared = ReceiverClass(rehearsal.layout.receiver_class) not in (ReceiverClass.R0, ReceiverClass.R2)
    wanted = COUNT if shared else 0
    told = "the receiver has its messages once" if shared else "the receiver refuses what has another identity"
    rehearsal.promise(f"{told} ({accepted:,} taken, {refused:,} refused)", accepted == wanted)
    rehearsal.promise("the second installation has applied its own instructions only", stranger.applied() == COUNT)
    rehearsal.promise("its processes live", not stranger.running.ended)


def _answered(rehearsal: Rehearsal, stranger: Stranger) -> tuple[int, int]:
    """Messages of the second installation that were taken, and claims and messages of it that were refused."""
    own = [one for one in rehearsal.totals_of_all() if one.installation == stranger.installation]
    tried = rehearsal.receiver.attempts(deadline=Deadline.after(PATIENCE_SECONDS))
    refused = sum(
        one.verdict is Verdict.OTHER_INSTALLATION_REFUSED and one.installation == stranger.installation for one in tried
    )
    return sum(one.accepted for one in own), refused


def _left_out(rehearsal: Rehearsal, dsn: str) -> int:
    with session(dsn, Deadline.after(PATIENCE_SECONDS)) as connection:
        return int(one_row(connection, _LEFT_OUT, (rehearsal.active,))[0])


def _configure(rehearsal: Rehearsal, site: str) -> Path:
    source = rehearsal.config(site)
    folder = source.parent / _DATABASE
    make_folder(folder / _HISTORY)
    shutil.copyfile(source.with_name(HANDLERS), folder / HANDLERS)
    content = yaml.safe_load(source.read_text())
    for one in content["sites"].values():
        one["database"]["dsn"] = one["database"]["dsn"].replace("dbname=postgres", f"dbname={_DATABASE}")
    config = folder / CONFIGURATION
    write_file(config, yaml.safe_dump(content, sort_keys=False))
    return config


def _make_database(dsn: str) -> None:
    with session(dsn, Deadline.after(PATIENCE_SECONDS)) as connection:
        connection.execute(b"drop database if exists stranger with (force)")
        connection.execute(b"create database stranger")
