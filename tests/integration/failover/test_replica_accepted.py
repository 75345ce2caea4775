"""Whoever states that what a replica lacks may be lost goes on with it, and the record says what was lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.flow import PATIENCE_SECONDS
from support.sites import Sites
from zerotail.core.identity import epoch_of
from zerotail.deadline import Deadline
from zerotail.lab.replica import keep_replica, promote_replica

pytestmark = [pytest.mark.nightly, pytest.mark.chapters]

FAR = epoch_of(1001, 0)
ACCEPTED = ("--accept-loss",)


def test_the_site_goes_on_in_an_epoch_far_away_and_waits_behind_the_gate(sites: Sites) -> None:
    keep_replica(sites.lab, "east", Deadline.after(PATIENCE_SECONDS))
    sites.insert("east", 10)
    sites.wait_until_all_arrived("east")
    sites.kill("east")
    promote_replica(sites.lab, "east", Deadline.after(PATIENCE_SECONDS))
    plan = sites.call("takeover", "plan", "--to", "east", *ACCEPTED, "--json", at="east").answer("takeover-plan")
    assert plan["needs"] == ["--accept-loss"]
    stated = ("--plan", plan["id"], "--confirm", "east", *ACCEPTED)
    said = sites.call("takeover", "run", "--to", "east", *stated, "--json", at="east")
    assert (said.code, said.answer("error")["code"]) == (5, "ZT411"), "the copy that is ahead never opens the gate"
    assert sites.standing("east") == (FAR, "opened", "gated")


def test_the_other_copy_is_replaced_by_a_statement_of_its_own(sites: Sites) -> None:
    refused = sites.call("rejoin", "plan", "--site", "west", "--json", at="east")
    assert (refused.code, refused.answer("error")["code"]) == (3, "ZT471")
    wrong = sites.call("rejoin", "plan", "--site", "west", "--accept-loss", "east", "--json", at="east")
    assert (wrong.code, wrong.answer("error")["code"]) == (2, "ZT122")
    plan = sites.call("rejoin", "plan", "--site", "west", "--accept-loss", "west", "--json", at="east")
    planned = plan.answer("rejoin-plan")
    assert planned["needs"] == ["--accept-loss west"]
    stated = ("--plan", planned["id"], "--confirm", "west", "--accept-loss", "west")
    ran = sites.call("rejoin", "run", "--site", "west", *stated, "--json", at="east")
    assert ran.code == 0, ran.out + ran.err
    tail = ran.answer("rejoin-report")["tail"]
    lost = 10 * len(sites.system.producers) * sites.system.partitions
    assert (tail["released"], tail["instructions"]) == (True, lost)
    kinds = [json.loads(line)["kind"] for line in Path(tail["file"]).read_text().splitlines()]
    assert kinds.count("instruction") == lost


def test_then_the_site_is_live(sites: Sites) -> None:
    sites.act("takeover", "--to", "east", confirm="east", at="east")
    assert sites.standing("east") == (FAR, "live", "gated")
