"""Restores inside a takeover: topics in another order, or empty, and a state that must come out as it is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.arena import Arena
from support.flow import PATIENCE_SECONDS
from support.journal import superuser
from support.restoring import write_disordered
from support.sites import Sites, working_sites
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import kill_target
from zerotail.lab.site import other_site
from zerotail.postgres.connection import one_row, session
from zerotail.restore.configured import places_of

pytestmark = pytest.mark.nightly
SPOIL = "update zerotail.state set value = value || 'x'::bytea where stage = %s and partition = 1 and key = 'account 5'"
REPAIR = (
    "update zerotail.state set value = substr(value, 1, length(value) - 1) "
    "where stage = %s and partition = 1 and key = 'account 5'"
)
STATE = "select sum(length(value)) from zerotail.state where stage = %s and partition = 1"


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two sites with a flow that is at work in east; nothing follows in west."""
    with working_sites(arena.renewed(), tmp_path_factory.mktemp("sites"), ("east",), 300) as pair:
        yield pair


def lose(sites: Sites, site: str) -> None:
    """The site's processes and servers, all of them."""
    sites.kill(site)
    assert kill_target(sites.lab, site).bit


def fill_in_another_order(sites: Sites, site: str, seed: int) -> int:
    """Independent producers have filled the site's topic; how many records."""
    configuration = sites.configuration(site)
    places = places_of(configuration, SiteName(site), str(sites.system.topic))
    return sum(write_disordered(place, seed + place.partition) for place in places)


def state_bytes(sites: Sites, site: str) -> int:
    with session(sites.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
        return int(one_row(connection, STATE, (sites.system.stage,))[0])


def go_on(sites: Sites, site: str) -> None:
    sites.start(site)
    sites.insert(site, 40)
    sites.wait_until_all_arrived(site)


def test_a_state_that_the_handler_does_not_come_to_ends_the_takeover_before_anything_is_sent(sites: Sites) -> None:
    sites.kill("east")
    with superuser(sites.dsn("east")) as session:
        assert session.execute(SPOIL.encode(), (sites.system.stage,)).rowcount == 1
    wanted = state_bytes(sites, "east")
    wait_until("west has it", lambda: state_bytes(sites, "west") == wanted, Deadline.after(PATIENCE_SECONDS))
    assert kill_target(sites.lab, "east").bit
    assert fill_in_another_order(sites, "west", 7) == 4 * 300
    sent = sites.system.accepted()
    stated = ("--to", "west", "--strategy", "unbounded", "--rebuild-state")
    plan = sites.call("takeover", "plan", *stated, "--json").answer("takeover-plan")
    said = sites.call("takeover", "run", *stated, "--plan", plan["id"], "--confirm", "west", "--json")
    error = said.answer("error")
    assert (said.code, error["code"]) == (70, "ZT646"), error
    assert "partition 1" in error["message"]
    assert "'account 5'" in error["message"]
    assert sites.standing("west")[1] == "opened"
    sites.start("west")
    again = sites.call("takeover", "resume", *stated, "--json").answer("error")
    assert again["code"] == "ZT646"
    assert sites.system.accepted() == sent


def test_with_its_state_as_it_was_the_takeover_is_finished_and_goes_on(sites: Sites) -> None:
    with superuser(sites.dsn("west")) as session:
        assert session.execute(REPAIR.encode(), (sites.system.stage,)).rowcount == 1
    stated = ("--to", "west", "--strategy", "unbounded", "--rebuild-state")
    report = sites.call("takeover", "resume", *stated, "--json").answer("takeover-report")
    assert (report["changed"], report["strategy"], report["refilled"]) == (True, "unbounded", 0)
    sites.insert("west", 40)
    sites.wait_until_all_arrived("west")


@pytest.mark.parametrize(
    ("strategy", "filled"), [("bounded", True), ("sort", True), ("ordered-refill", False), ("mirror-tail", True)]
)
def test_the_next_site_takes_over_by_every_strategy(sites: Sites, strategy: str, filled: bool) -> None:
    (lost,) = sites.processes
    survivor = other_site(lost)
    flags = ("--accept-lost-database", survivor)
    sites.act("rejoin", "--site", survivor, confirm=survivor, at=lost, flags=flags)
    rows = sites.rows(lost)
    wait_until("it has all rows", lambda: sites.rows(survivor) == rows, Deadline.after(PATIENCE_SECONDS))
    assert sites.call("lab", "start", survivor, "--dir", sites.lab.folder).code == 0
    lose(sites, lost)
    present = fill_in_another_order(sites, survivor, 11) if filled else 0
    rebuild = ("--rebuild-state",) if strategy != "mirror-tail" else ()
    stated = ("--to", survivor, "--strategy", strategy, *rebuild)
    report = sites.act("takeover", *stated, confirm=survivor, at=survivor)
    assert report["strategy"] == strategy
    assert report["refilled"] == rows - present
    go_on(sites, survivor)
