"""Acts that are killed half way are finished by `resume`; a site that wakes up too late sends nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from support.flow import PATIENCE_SECONDS
from support.sites import Sites
from zerotail.core.identity import epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.commands import TAKEOVER_STEPS
from zerotail.lab.fault import continue_target, cut_link, heal_link, kill_target, stop_target
from zerotail.lab.link import CutMode
from zerotail.postgres.connection import one_row, session

pytestmark = [pytest.mark.servers, pytest.mark.chapters]


def killed(sites: Sites, act: str, to: str, step: str, when: str) -> None:
    """Run or resume an act in a process that kills itself at a step."""
    place = ("--config", str(sites.config(to)), "--state", str(sites.state), "--to", to)
    process = subprocess.run(
        [sys.executable, "-m", "zerotail.drill.killed_act", act, *place, "--step", step, "--when", when],
        env={**os.environ, **sites.environment(to)},
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, f"it was not killed at {step} {when}"


def test_a_takeover_that_is_killed_at_every_step_is_finished_by_resume(sites: Sites) -> None:
    assert kill_target(sites.lab, "east").bit
    sites.kill("east")
    for step in TAKEOVER_STEPS:
        for when in ("begin", "done"):
            killed(sites, "takeover", "west", step, when)
            if (step, when) == ("open epoch", "done"):
                sites.insert("west", 10)  # whoever inserts before the epoch is live waits until it is
    assert sites.call("takeover", "status").code == 1
    said = sites.call("takeover", "resume", "--json")
    assert said.code == 0, said
    assert sites.standing("west") == (epoch_of(2, 1), "live", "exposed")
    assert sites.call("takeover", "status").code == 0
    sites.insert("west", 20)
    sites.wait_until_all_arrived("west")
    assert sites.call("takeover", "resume", "--json").answer("takeover-report")["changed"] is False


def test_a_lost_database_comes_back_by_a_statement_that_is_recorded(sites: Sites) -> None:
    flags = ("--accept-lost-database", "east")
    report = sites.act("rejoin", "--site", "east", confirm="east", flags=flags)
    assert (report["accepted"], report["tail"]) == (["--accept-lost-database east"], None)
    assert sites.standing("west") == (epoch_of(2, 1), "live", "gated")


def test_a_handover_that_is_killed_is_finished_by_resume(sites: Sites) -> None:
    assert sites.call("lab", "start", "east", "--dir", sites.lab.folder).code == 0
    sites.start("east")
    killed(sites, "handover", "east", "drain", "done")
    sites.insert("west", 1)
    assert sites.standing("west")[1] == "live", "nobody drains it any more, and its producers say so"
    killed(sites, "handover", "east", "drain", "done")
    meanwhile = sites.call("takeover", "run", "--to", "east", "--json", at="east")
    assert (meanwhile.code, meanwhile.answer("error")["code"]) == (3, "ZT450")
    wait_until("its producers go on", lambda: sites.standing("west")[1] == "live", Deadline.after(PATIENCE_SECONDS))
    killed(sites, "handover", "east", "stop the old primary", "done")
    killed(sites, "handover", "east", "open epoch", "done")
    killed(sites, "handover", "east", "copy the database", "begin")
    assert sites.call("handover", "status", at="east").code == 1
    said = sites.call("handover", "resume", at="east")
    assert said.code == 0, said
    assert sites.standing("east") == (epoch_of(3, 0), "live", "gated")
    sites.insert("east", 20)
    sites.wait_until_all_arrived("east")


def test_a_site_that_wakes_up_after_a_takeover_releases_nothing_and_its_emitters_end(sites: Sites) -> None:
    # East journals what west never gets, and is frozen before it can ask for its release.
    assert cut_link(sites.lab, "both", CutMode.HANG).bit
    sent = sites.system.accepted()
    sites.insert("east", 10, "zombie")
    wait_until("east has taken them", lambda: nothing_left(sites), patience())
    assert stop_target(sites.lab, "east").bit
    sites.processes["east"].send_signal(signal.SIGSTOP)
    report = sites.act("takeover", "--to", "west", confirm="west")
    assert report["exposed"]
    sites.insert("west", 20)
    heal_link(sites.lab, "both")
    assert continue_target(sites.lab, "east").bit
    sites.processes["east"].send_signal(signal.SIGCONT)
    sites.wait_until_all_arrived("west")
    assert sites.system.accepted() == sent + 20 * 4
    # East's own database says that east is live; its emitters owe, ask, and are not let through.
    assert nothing_left(sites)
    rejoined = sites.act("rejoin", "--site", "east", confirm="east")["tail"]
    assert (rejoined["instructions"], rejoined["messages"]) == (40, 40)
    assert rejoined["segments"] > 0
    sites.wait_until_told("east", "emitter bank-pair/0 ended: SUPERSEDED")
    sites.insert("west", 10)
    sites.wait_until_all_arrived("west")
    assert sites.system.accepted() == sent + 30 * 4


def nothing_left(sites: Sites) -> bool:
    """Whether east's stages have applied everything, so that only the gate is in between."""
    query = """
        select count(*) from zerotail.instruction as row join zerotail.head using (partition)
         where row.serial > (head.vector ->> row.producer::text)::bigint
    """
    with session(sites.dsn("east"), patience()) as east:
        return bool(one_row(east, query)[0] == 0)


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)
