"""East's database comes back without the end of its log, on the same timeline, as a rollback of its storage does it:
west holds the only copy of what it lacks. In this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.arena import Arena
from support.flow import PATIENCE_SECONDS
from support.rollback import roll_back, snapshot
from support.sites import Sites, working_sites
from zerotail.core.identity import epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused
from zerotail.lab.fault import cut_link, heal_link, kill_target, start_target
from zerotail.lab.link import BOTH, CutMode
from zerotail.postgres.connection import one_row, session

pytestmark = [pytest.mark.servers, pytest.mark.chapters]


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two sites with a flow that is at work in east."""
    with working_sites(arena.renewed(), tmp_path_factory.mktemp("sites"), ("east", "west"), 50) as pair:
        yield pair


@pytest.fixture(scope="module")
def kept(sites: Sites) -> Iterator[Path]:
    """East's storage as it was at the beginning."""
    with snapshot(sites.lab, "east") as folder:
        yield folder


def wait_until_it_takes_rows(sites: Sites) -> None:
    def taken() -> bool:
        try:
            sites.insert("east", 1)
        except Refused:
            return False
        return True

    wait_until("east takes rows", taken, Deadline.after(PATIENCE_SECONDS))


def lives(sites: Sites) -> list[Any]:
    with session(sites.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as east:
        return east.execute(b"select verified_at - started_at from zerotail.life order by number").fetchall()


def test_a_server_that_is_only_started_anew_goes_on_by_itself(sites: Sites, kept: Path) -> None:
    assert kept.is_dir()
    wait_until_it_takes_rows(sites)
    before = len(lives(sites))
    assert kill_target(sites.lab, "east.postgres").bit
    assert start_target(sites.lab, "east.postgres").bit
    wait_until_it_takes_rows(sites)
    sites.wait_until_all_arrived("east")
    assert len(lives(sites)) == before + 1
    assert sites.call("status", at="east").code == 0


def test_one_that_lost_the_end_of_its_log_takes_nothing_and_sends_nothing(sites: Sites, kept: Path) -> None:
    sites.insert("east", 50)
    arrived = sites.wait_until_all_arrived("east")
    roll_back(sites.lab, "east", kept)
    held = sites.rows("east")
    assert held < arrived

    def said() -> str | None:
        status = sites.call("status", at="east")
        return status.out if "bytes of the log that east's database has lost" in status.out else None

    assert "zerotail takeover run --to west" in wait_until("status says it", said, Deadline.after(PATIENCE_SECONDS))
    assert sites.call("status", at="east").code != 0
    with pytest.raises(Refused, match="nobody has made sure"):
        sites.insert("east", 1)
    assert (sites.rows("east"), sites.system.accepted()) == (held, arrived)
    assert sites.rows("west") == arrived


def test_nobody_goes_on_without_that_end_or_replaces_the_only_copy(sites: Sites) -> None:
    lacking = sites.rows("west") - sites.rows("east")
    assert lacking > 0
    for words in (
        ("takeover", "plan", "--to", "east"),
        ("takeover", "run", "--to", "east"),
        ("handover", "plan", "--to", "west"),
        ("rejoin", "plan", "--site", "west"),
        ("rejoin", "run", "--site", "west"),
    ):
        refused = sites.call(*words, "--json", at="east")
        error = refused.answer("error")
        assert (refused.code, error["code"]) == (3, "ZT479"), words
        assert len(set(re.findall(r"\b0/[0-9A-F]+\b", error["why"]))) >= 2, "both positions"
        assert f"{lacking} messages that may have been sent, {lacking} acknowledged instructions" in error["why"]
        assert error["tries"][0].startswith("zerotail takeover plan --to west")


def test_whoever_goes_on_alone_all_the_same_gives_no_number_twice(sites: Sites) -> None:
    """It may have opened epochs in what it lost: records of them are in its Kafka."""
    assert cut_link(sites.lab, BOTH, CutMode.RESET).bit
    planned = sites.call("takeover", "plan", "--to", "east", "--accept-lost-site", "west", "--json", at="east")
    assert heal_link(sites.lab, BOTH).bit
    assert planned.answer("takeover-plan")["epoch"] == epoch_of(1001, 0)


def test_the_other_site_takes_over_and_nothing_is_lost(sites: Sites) -> None:
    arrived = sites.system.accepted()
    sites.act("takeover", "--to", "west", confirm="west")
    assert sites.rows("west") == arrived
    sites.insert("west", 20)
    assert sites.wait_until_all_arrived("west") == arrived + 20 * 2 * 2
    with session(sites.dsn("west"), Deadline.after(PATIENCE_SECONDS)) as west:
        assert one_row(west, "select count(*) from zerotail.life where timeline = 2") == (1,)
