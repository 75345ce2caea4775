"""A site is lost, the other one takes over; the lost one comes back, and gets its role back. In this order."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from support.flow import PATIENCE_SECONDS
from support.sites import Sites
from zerotail.core.identity import epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import ZerotailError
from zerotail.lab.fault import kill_target, start_target
from zerotail.postgres.connection import one_row, session

pytestmark = [pytest.mark.servers, pytest.mark.chapters]

TAKEN_OVER, BACK, ALONE = epoch_of(2, 1), epoch_of(3, 0), epoch_of(4, 0)


def test_after_the_loss_of_east_west_goes_on_at_the_break_point(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = sites.configuration("west").objectives.takeover.total_seconds()
    monkeypatch.setenv("ZEROTAIL_OBJECTIVES__TAKEOVER", "1ms")
    stop = Event()
    feeder = Thread(target=feed, args=(sites, stop))
    feeder.start()
    arrived_before = sites.system.accepted()
    wait_until("the flow is busy", lambda: sites.system.accepted() > arrived_before + 50, patience())
    lost_at = time.monotonic()
    assert kill_target(sites.lab, "east").bit
    sites.kill("east")
    known = sites.system.accepted()
    plan = sites.call_program("takeover", "plan", "--to", "west", "--json").answer("takeover-plan")
    ran = sites.call_program("takeover", "run", "--to", "west", "--plan", plan["id"], "--confirm", "west")
    assert ran.code == 0
    assert ran.out.startswith(f"west is active, epoch {TAKEN_OVER}, after ")
    assert "  not fenced: east was not shut off" in ran.out
    assert "s, objectives.takeover says 0.001 s" in ran.out
    assert "takeover: go live ready after" in ran.err
    wait_until("the first new message", lambda: sites.system.accepted() > known, patience())
    assert time.monotonic() - lost_at < wanted
    stop.set()
    feeder.join()
    sites.wait_until_all_arrived("west")
    assert sites.standing("west") == (TAKEN_OVER, "live", "exposed")


def test_the_steps_are_recorded_and_a_second_takeover_has_nothing_to_do(sites: Sites) -> None:
    with session(sites.dsn("west"), patience()) as west:
        steps = [step for (step,) in west.execute("select step from zerotail.step order by step").fetchall()]
    assert steps == [2, 3, 4, 5, 6, 7, 8]
    (note,) = [json.loads(path.read_text()) for path in sites.state.glob("*-takeover-west.json")]
    assert note["finished_at"]
    said = sites.call("takeover", "run", "--to", "west", "--plan", note["plan"], "--confirm", "west", "--json")
    assert (said.code, said.answer("takeover-report")["changed"]) == (0, False)
    assert sites.call("takeover", "resume").code == 0
    status = sites.call("takeover", "status", "--json").answer("takeover-status")
    assert (status["epoch"], status["unfinished"], len(status["steps"])) == (TAKEN_OVER, None, 7)


def test_a_database_that_does_not_answer_is_not_replaced_without_a_statement(sites: Sites) -> None:
    plan = sites.call("rejoin", "plan", "--site", "east", "--json").answer("rejoin-plan")
    assert plan["needs"] == ["--accept-lost-database east"]
    said = sites.call("rejoin", "run", "--site", "east", "--plan", plan["id"], "--confirm", "east", "--json")
    assert (said.code, said.answer("error")["code"]) == (3, "ZT450")
    handed = sites.call("handover", "plan", "--to", "east", "--json")
    assert (handed.code, handed.answer("error")["code"]) == (4, "ZT420")
    taken = sites.call("takeover", "plan", "--to", "east", "--json")
    assert (taken.code, taken.answer("error")["code"]) == (4, "ZT401")


def test_east_comes_back_as_standby_and_its_own_tail_is_kept_and_never_applied(sites: Sites) -> None:
    assert start_target(sites.lab, "east").bit
    sites.never_restarted("east")
    sites.insert("east", 5, "tail")
    old_plan = sites.call("rejoin", "plan", "--site", "east", "--json").answer("rejoin-plan")
    report = sites.act("rejoin", "--site", "east", confirm="east")
    tail = report["tail"]
    lines = [json.loads(line) for line in Path(tail["file"]).read_text().splitlines()]
    # What was under way when east was lost may have been submitted again at west: it is kept, and counted apart.
    kept = [line["id"] for line in lines if line["kind"] == "instruction" and not line.get("again")]
    assert len([name for name in kept if name.endswith("/tail")]) == 5 * 2 * 2
    assert len(kept) == tail["instructions"]
    assert sites.standing("west") == (TAKEN_OVER, "live", "gated")
    sites.start("east")
    sites.insert("west", 50)
    sites.wait_until_all_arrived("west")
    with session(sites.dsn("west"), patience()) as west:
        assert one_row(west, "select count(*) from zerotail.instruction where id like '%%/tail'") == (0,)
    again = sites.call("rejoin", "run", "--site", "east", "--plan", old_plan["id"], "--confirm", "east", "--json")
    assert (again.code, again.answer("rejoin-report")["changed"]) == (0, False)


def test_east_gets_its_role_back_and_west_follows(sites: Sites) -> None:
    report = sites.act("failback", confirm="east", at="east")
    assert (report["epoch"], report["exposed"]) == (BACK, False)
    assert sites.standing("east") == (BACK, "live", "gated")
    sites.insert("east", 50)
    sites.wait_until_all_arrived("east")
    assert sites.call("failback", "run", "--json", at="east").answer("failback-report")["changed"] is False
    assert sites.call("failback", "status", at="east").code == 0


def test_a_site_goes_on_alone_by_the_statement_that_the_other_is_out_until_that_is_back(sites: Sites) -> None:
    assert kill_target(sites.lab, "west").bit
    sites.kill("west")
    held = sites.system.accepted()
    sites.insert("east", 10)
    stated = ("--accept-lost-site", "west")
    report = sites.act("takeover", "--to", "east", *stated, confirm="east", at="east")
    assert (report["exposed"], report["accepted"]) == (True, ["--accept-lost-site west"])
    assert sites.wait_until_all_arrived("east") == held + 40
    assert sites.standing("east") == (ALONE, "live", "exposed")
    assert waits_for(sites) == ""
    assert start_target(sites.lab, "west").bit
    back = sites.act("rejoin", "--site", "west", confirm="west", at="east")
    assert [step["step"] for step in back["steps"]] == ["back to gated"]
    assert sites.standing("east") == (ALONE, "live", "gated")
    assert waits_for(sites) == "FIRST 1 (west)"


def waits_for(sites: Sites) -> str:
    with session(sites.dsn("east"), patience()) as east:
        return str(one_row(east, "show synchronous_standby_names")[0])


def feed(sites: Sites, stop: Event) -> None:
    """A client that submits all the time, at whichever site is live; what got no answer it forgets."""
    site, live = "east", ("live", "gated")
    while not stop.is_set():
        try:
            if sites.standing(site)[1:] == live:
                sites.insert(site, 2)
        except ZerotailError:
            site, live = "west", ("live", "exposed")
        stop.wait(0.01)


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)
