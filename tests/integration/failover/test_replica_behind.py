"""A replica inside the active site takes over its database: with everything, and without what the other site holds."""

from __future__ import annotations

import re
import time

import pytest

from support.flow import PATIENCE_SECONDS
from support.sites import Sites
from zerotail.core.identity import epoch_of
from zerotail.deadline import Deadline
from zerotail.lab.fault import cut_link, heal_link
from zerotail.lab.link import BOTH, CutMode
from zerotail.lab.replica import keep_replica, promote_replica
from zerotail.operate import act, waiting

pytestmark = [pytest.mark.servers, pytest.mark.chapters]

RENEWED, AT_WEST = epoch_of(2, 0), epoch_of(3, 1)
BEHIND = 50


def test_behind_a_cut_link_it_says_what_it_waits_for_and_ends(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(act, "STANDSTILL_SECONDS", 5.0)
    monkeypatch.setattr(waiting, "SAY_EVERY_SECONDS", 1.0)
    sites.kill("east")
    keep_replica(sites.lab, "east", patience())
    promote_replica(sites.lab, "east", patience())
    assert cut_link(sites.lab, BOTH, CutMode.HANG).bit
    words = ("takeover", "plan", "--to", "east")
    planned = sites.call(*words, "--json", at="east").answer("takeover-plan")
    assert planned["deadline_seconds"] == sum(limit["seconds"] for limit in planned["limits"]) >= 5
    began = time.monotonic()
    run = ("takeover", "run", "--to", "east", "--plan", planned["id"], "--confirm", "east", "--json")
    ended = sites.call(*run, at="east")
    assert time.monotonic() - began < planned["deadline_seconds"]
    error = ended.answer("error")
    assert (ended.code, error["code"], error["tries"]) == (5, "ZT411", ["zerotail takeover resume"])
    said = [line for line in ended.err.splitlines() if "waits for the other site to catch up" in line]
    assert len(said) >= 3, ended.err
    assert all("its database does not answer" in line and "it ends by" in line for line in said)


def test_with_everything_the_site_goes_on_by_itself(sites: Sites) -> None:
    assert heal_link(sites.lab, BOTH).bit
    done = sites.call("takeover", "resume", at="east")
    assert done.code == 0, done.err
    assert sites.standing("east") == (RENEWED, "live", "gated")
    sites.start("east")
    sites.insert("east", 20)
    sites.wait_until_all_arrived("east")


def test_without_what_the_other_site_holds_it_does_not(sites: Sites) -> None:
    keep_replica(sites.lab, "east", patience())
    sites.insert("east", BEHIND)
    arrived = sites.wait_until_all_arrived("east")
    sites.kill("east")
    promote_replica(sites.lab, "east", patience())
    lacking = BEHIND * len(sites.system.producers) * sites.system.partitions
    assert arrived > lacking
    for words, code in (
        (("takeover", "plan", "--to", "east"), "ZT470"),
        (("takeover", "run", "--to", "east"), "ZT470"),
        (("rejoin", "plan", "--site", "west"), "ZT471"),
        (("rejoin", "run", "--site", "west"), "ZT471"),
    ):
        said = sites.call(*words, "--json", at="east")
        error = said.answer("error")
        assert (said.code, error["code"]) == (3, code), words
        assert len(set(re.findall(r"\b0/[0-9A-F]+\b", error["why"]))) >= 2, "both positions"
        assert f"{lacking} messages that may have been sent, {lacking} acknowledged instructions" in error["why"]
        assert any(line.startswith("zerotail takeover plan --to west") for line in error["tries"])
    assert sites.standing("east") == (RENEWED, "live", "gated"), "nothing was done"


def test_the_other_site_goes_on_and_nothing_is_lost(sites: Sites) -> None:
    held = sites.rows("west")
    sites.act("takeover", "--to", "west", confirm="west")
    sites.insert("west", 5, "x")
    assert sites.wait_until_all_arrived("west") > held
    assert sites.standing("west") == (AT_WEST, "live", "exposed")
    report = sites.act("rejoin", "--site", "east", confirm="east")
    assert report["changed"]
    assert sites.standing("west") == (AT_WEST, "live", "gated")


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)
