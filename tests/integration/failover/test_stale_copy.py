"""A copy of the time before the other site went on alone is not taken over without a word."""

from __future__ import annotations

import json
from threading import Thread

import pytest

from support.flow import PATIENCE_SECONDS
from support.sites import Sites
from zerotail.core.identity import Lsn, SiteName, epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused
from zerotail.lab.fault import kill_target, start_target
from zerotail.postgres.connection import answers, one_row, session
from zerotail.postgres.promotion import is_in_recovery, promote
from zerotail.running.emitter import Emitter

pytestmark = [pytest.mark.servers, pytest.mark.chapters]

ALONE = epoch_of(2, 0)


def test_a_plan_says_how_old_the_copy_is(sites: Sites) -> None:
    planned = sites.call("takeover", "plan", "--to", "west")
    assert planned.code == 0, planned
    assert "west: the log up to 0/" in planned.out
    assert "its last change of " in planned.out
    assert "its last heartbeat of " in planned.out
    assert planned.out.count(" s ago") >= 2


def test_nobody_goes_on_alone_while_the_other_site_takes_over_by_itself(sites: Sites) -> None:
    assert kill_target(sites.lab, "west.postgres").bit
    config = sites.config("east")
    content = json.loads(config.read_text())
    alone = ("--to", "east", "--accept-lost-site", "west")

    def automatic(**takeover: list[str]) -> None:
        config.write_text(json.dumps({**content, "takeover": {**content["takeover"], "automatic": "on", **takeover}}))

    automatic()
    said = sites.call("takeover", "plan", *alone, "--json", at="east")
    assert (said.code, said.answer("error")["code"]) == (3, "ZT476")
    automatic(fence=["false"])
    planned = sites.call("takeover", "plan", *alone, "--json", at="east").answer("takeover-plan")
    assert planned["steps"][0] == "fence: shut west off by false"
    said = sites.call("takeover", "run", *alone, "--plan", planned["id"], "--confirm", "east", "--json", at="east")
    assert (said.code, said.answer("error")["code"]) == (3, "ZT477")
    assert sites.standing("east") == (epoch_of(1, 0), "live", "gated"), "nothing was changed"
    automatic(fence=["true"])


def test_a_receiver_that_met_a_newer_epoch_holds_a_takeover_up(sites: Sites) -> None:
    sites.act("takeover", "--to", "east", "--accept-lost-site", "west", confirm="east", at="east")
    sites.insert("east", 5)
    sites.wait_until_all_arrived("east")
    sites.kill("east")
    assert kill_target(sites.lab, "east").bit
    assert start_target(sites.lab, "west.postgres").bit
    there = sites.dsn("west")
    wait_until("west answers", lambda: answers(there), Deadline.after(PATIENCE_SECONDS))
    for words in (("plan",), ("run", "--confirm", "west")):
        said = sites.call("takeover", words[0], "--to", "west", *words[1:], "--json")
        error = said.answer("error")
        assert (said.code, error["code"]) == (3, "ZT475"), said
        assert f"was claimed in epoch {ALONE}" in error["message"]
        assert any("--accept-loss" in line for line in error["tries"])


def test_another_server_under_the_same_address_is_not_promoted(sites: Sites) -> None:
    """One that holds less than what was looked at: here the only one there is, beside a position it never had."""
    with pytest.raises(Refused) as refused:
        promote(sites.dsn("west"), Deadline.after(PATIENCE_SECONDS), Lsn(1 << 60))
    assert "two servers answer under one address" in refused.value.message
    with session(sites.dsn("west"), Deadline.after(PATIENCE_SECONDS)) as west:
        assert is_in_recovery(west)


def test_an_old_copy_needs_its_age_as_well(sites: Sites) -> None:
    config = sites.config("west")
    content = json.loads(config.read_text())
    config.write_text(json.dumps({**content, "takeover": {**content["takeover"], "stale_after": "1ms"}}))
    said = sites.call("takeover", "plan", "--to", "west", "--accept-loss", "--json")
    assert (said.code, said.answer("error")["code"]) == (3, "ZT474")
    short = sites.call("takeover", "plan", "--to", "west", "--accept-loss", "--accept-age", "2ms", "--json")
    assert (short.code, short.answer("error")["code"]) == (3, "ZT474")
    wrong = sites.call("takeover", "plan", "--to", "west", "--accept-age", "soon", "--json")
    assert (wrong.code, wrong.answer("error")["code"]) == (2, "ZT149")
    stated = ("--accept-loss", "--accept-age", "1h")
    planned = sites.call("takeover", "plan", "--to", "west", *stated, "--json").answer("takeover-plan")
    assert planned["needs"] == ["--accept-loss", "--accept-age 1h"]
    assert planned["epoch"] > ALONE


def test_an_accepted_loss_goes_through_and_stops_no_more_than_the_lanes_of_that_receiver(sites: Sites) -> None:
    did = sites.act("takeover", "--to", "west", "--accept-loss", "--accept-age", "1h", confirm="west")
    (remark,) = (one for one in did["remarks"] if "ZT602" in one)
    assert "in another history: nothing is sent there before that is settled" in remark
    assert sites.standing("west")[1:] == ("live", "exposed")
    before = segments(sites)
    sites.insert("west", 1)
    try:
        wait_until("stages of west work", lambda: segments(sites) > before, Deadline.after(30))
    finally:
        sites.kill("west")

    def stopped() -> bool:
        return "has stopped: ZT602" in sites.call("emissions", "list", "--site", "west").out

    emitter = Emitter(sites.configuration("west"), SiteName("west"), lambda _: None, lambda *_, **__: None)
    runs = Thread(target=emitter.run)
    runs.start()
    try:
        wait_until("the emitter stops the lane", stopped, Deadline.after(30))
    finally:
        emitter.stop()
        runs.join()


def segments(sites: Sites) -> int:
    with session(sites.dsn("west"), Deadline.after(PATIENCE_SECONDS)) as west:
        return int(one_row(west, "select count(*) from zerotail.segment")[0])
