"""Whose file says what: the sites of a pair have the numbers that their database gives them, in whatever order a file
lists them. In this order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.arena import Arena
from support.command import Said
from support.flow import PATIENCE_SECONDS
from support.sites import Sites, two_sites, working_sites
from zerotail.core.identity import epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import cut_link, heal_link, kill_target, start_target
from zerotail.lab.link import CutMode
from zerotail.postgres.connection import session
from zerotail.postgres.promotion import promote
from zerotail.postgres.site import read_numbers

pytestmark = [pytest.mark.servers, pytest.mark.chapters]


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two sites with a flow that has sent something; each site's own file lists its own site first."""
    with working_sites(arena.renewed(), tmp_path_factory.mktemp("numbers"), ("east",), 20) as pair:
        rewrite(pair, "west", ("west", "east"))
        yield pair


def rewrite(sites: Sites, at: str, order: tuple[str, ...], **names: str) -> None:
    """Let the file at a site list the sites in this order, some of them under other names."""
    content: dict[str, Any] = json.loads(sites.config(at).read_text())
    listed = {names.get(site, site): content["sites"][site] for site in order}
    sites.config(at).write_text(json.dumps(content | {"sites": listed}))


def refused(said: Said) -> tuple[int, str]:
    """The exit code and the number of the one error that was said."""
    return said.code, said.answer("error")["code"]


def test_two_sites_that_both_go_on_alone_never_do_so_in_one_epoch(sites: Sites) -> None:
    assert cut_link(sites.lab, "both", CutMode.RESET).bit
    sites.kill("east")
    sites.act("takeover", "--to", "west", confirm="west", at="west")
    alone = ("--to", "east", "--accept-lost-site", "west")
    assert refused(sites.call("takeover", "plan", *alone, "--json", at="east")) == (3, "ZT475"), "a receiver knows"
    # Where no receiver can say that west has gone on, the two epochs are different ones all the same.
    assert kill_target(sites.lab, "outside.receiver").bit
    sites.act("takeover", *alone, confirm="east", at="east")
    assert start_target(sites.lab, "outside.receiver").bit
    standings = sites.standing("east"), sites.standing("west")
    assert standings == ((epoch_of(2, 0), "live", "exposed"), (epoch_of(2, 1), "live", "exposed"))


def test_so_a_receiver_that_remembers_shuts_one_of_them_out(sites: Sites) -> None:
    before = sites.system.accepted()
    sites.insert("east", 5)
    sites.start("east")
    sites.wait_until_told("east", f"emitter {sites.system.bank}/0 ended: SUPERSEDED")
    assert sites.system.accepted() == before


def test_every_act_refuses_a_site_that_the_database_does_not_know(sites: Sites) -> None:
    assert heal_link(sites.lab, "both").bit
    rewrite(sites, "east", ("east", "west"), west="north")
    for words in (
        ("takeover", "plan", "--to", "north"),
        ("takeover", "plan", "--to", "east", "--accept-lost-site", "north"),
        ("handover", "plan", "--to", "north"),
        ("failback", "plan"),
        ("rejoin", "plan", "--site", "north"),
        ("schema", "apply"),
        ("run", "flow", "--site", "east", "--take-over"),
    ):
        said = sites.call(*words, "--json", at="east")
        assert refused(said) == (3, "ZT438"), words
        assert "east and north, and the database knows east and west" in said.answer("error")["message"]


def test_a_database_from_before_learns_the_numbers_from_its_epochs(sites: Sites) -> None:
    with session(sites.dsn("west"), patience()) as west:
        west.execute("drop table zerotail.site")
        said = sites.call("takeover", "plan", "--to", "west", "--json")
        assert refused(said) == (3, "ZT439")
        assert said.answer("error")["tries"] == ["zerotail schema apply --site west"]
        assert sites.call("schema", "apply", "--site", "west").code == 0
        assert read_numbers(west) == {"east": 0, "west": 1}
    assert sites.call("takeover", "plan", "--to", "west").code == 0


def test_and_a_rejoin_sees_two_histories(sites: Sites) -> None:
    assert refused(sites.call("rejoin", "plan", "--site", "east", "--json")) == (3, "ZT437")


def test_a_standby_that_lost_its_primary_before_the_schema_was_applied_is_promoted_by_hand(
    sites: Sites, arena: Arena, tmp_path: Path
) -> None:
    sites.kill("east")
    with two_sites(arena.renewed(), tmp_path) as pair:
        with session(pair.dsn("east"), patience()) as east, session(pair.dsn("west"), patience()) as west:
            east.execute("drop table zerotail.site")
            wait_until("west has it", lambda: not read_numbers(west), patience())
        assert kill_target(pair.lab, "east").bit
        assert refused(pair.call("takeover", "plan", "--to", "west", "--json")) == (3, "ZT439")
        promote(pair.dsn("west"), patience())
        assert pair.call("schema", "apply", "--site", "west").code == 0
        assert pair.act("takeover", "--to", "west", confirm="west")["epoch"] == epoch_of(2, 1)


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)
