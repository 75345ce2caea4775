"""Whoever has the role `zerotail_operator`, and is no superuser, can carry out every act that changes roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.arena import Arena
from support.flow import PATIENCE_SECONDS
from support.sites import Sites, working_sites
from zerotail.deadline import Deadline
from zerotail.lab.fault import kill_target, start_target
from zerotail.postgres.connection import one_row, session

pytestmark = [pytest.mark.servers, pytest.mark.chapters]


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """A pair with some history, whose operator logs in as one; its processes have begun with rights of their own."""
    folder: Path = tmp_path_factory.mktemp("sites")
    with working_sites(arena.renewed(), folder, ("east", "west"), 20) as pair:
        pair.kill("east")
        with session(pair.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute("create role ada login in role zerotail_operator")
        for site in ("east", "west"):
            config = pair.config(site)
            config.write_text(config.read_text().replace("user=postgres", "user=ada"))
        yield pair


def waits_for(sites: Sites, site: str) -> str:
    """Whom commits of this site wait for."""
    with session(sites.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
        return str(one_row(connection, "show synchronous_standby_names")[0])


def test_an_operator_takes_over(sites: Sites) -> None:
    assert kill_target(sites.lab, "east.postgres").bit
    report = sites.act("takeover", "--to", "west", confirm="west")
    assert report["site"] == "west"
    assert sites.standing("west") == (513, "live", "exposed")
    assert waits_for(sites, "west") == ""


def test_an_operator_keeps_the_tail_and_lets_commits_wait_again(sites: Sites) -> None:
    assert start_target(sites.lab, "east.postgres").bit
    sites.insert("east", 3, "tail")
    report = sites.act("rejoin", "--site", "east", confirm="east")
    assert report["tail"]["instructions"] == 3 * len(sites.system.producers) * sites.system.partitions
    assert sites.standing("west") == (513, "live", "gated")
    assert waits_for(sites, "west") == "FIRST 1 (east)"


def test_an_operator_hands_over(sites: Sites) -> None:
    sites.act("handover", "--to", "east", confirm="east", at="east")
    assert sites.standing("east")[1:] == ("live", "gated")
    assert waits_for(sites, "east") == "FIRST 1 (west)"


def test_an_operator_goes_on_without_the_other_site(sites: Sites) -> None:
    assert kill_target(sites.lab, "west.postgres").bit
    lost = ("--accept-lost-site", "west")
    sites.act("takeover", "--to", "east", *lost, confirm="east", at="east")
    assert sites.standing("east")[1:] == ("live", "exposed")
    assert waits_for(sites, "east") == ""
