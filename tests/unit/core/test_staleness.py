"""How old a copy may be, who has spoken to receivers since, and which of two sites works."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.identity import ChannelName, Epoch, SiteName, Timeline, epoch_of
from zerotail.core.staleness import CopyAge, require_fresh, require_not_superseded, told_unbelieved
from zerotail.core.takeover import OtherCopy, SiteView, Step, plan_takeover
from zerotail.core.working import Working, choose_working, told_histories
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

EAST, WEST, BANK = SiteName("east"), SiteName("west"), ChannelName("bank")
ROW = EpochRow(epoch_of(1, 0), EAST, Timeline(1), Durability.GATED, Phase.LIVE, Cut())
FIRST = Lineage((ROW,))
ALONE = FIRST.opened(replace(ROW, epoch=epoch_of(2, 0), durability=Durability.EXPOSED))
TAKEN = FIRST.opened(replace(ROW, epoch=epoch_of(2, 1), site=WEST, timeline=Timeline(2), durability=Durability.EXPOSED))


def test_the_newest_thing_in_it_is_how_old_a_copy_is() -> None:
    assert CopyAge(7.0, 3.0, 100.0).seconds == 3.0
    assert CopyAge(None, None, 100.0).seconds == 100.0
    assert CopyAge(-2.0, None, 100.0).seconds == 0.0, "two clocks"


def test_an_old_copy_needs_an_age_that_is_as_long() -> None:
    age = CopyAge(700.0, 650.0, 900.0)
    assert not require_fresh(WEST, age, 650.0, None)
    for accepted in (None, 649.0):
        with pytest.raises(Refused) as refused:
            require_fresh(WEST, age, 300.0, accepted)
        assert refused.value.code == "ZT474"
        assert "11 min old" in refused.value.message
    assert any("--accept-age 17min" in line for line in refused.value.tries), "longer than it is: it grows"
    assert require_fresh(WEST, age, 300.0, 650.0)


def test_a_receiver_that_met_a_newer_epoch_has_heard_another_history() -> None:
    def ask(epoch: int | None, *, accept_loss: bool = False) -> Epoch | None:
        claims = {BANK: None if epoch is None else Epoch(epoch)}
        return require_not_superseded(WEST, FIRST, claims, accept_loss=accept_loss)

    assert ask(None) is None
    assert ask(epoch_of(1, 0)) is None
    with pytest.raises(Refused) as refused:
        ask(epoch_of(2, 0))
    assert refused.value.code == "ZT475"
    assert "claimed in epoch 512" in refused.value.message
    assert ask(epoch_of(7, 0), accept_loss=True) == epoch_of(7, 0)
    view = SiteView(WEST, 1, FIRST, None)
    assert plan_takeover(view, other=OtherCopy(EAST, claimed=epoch_of(7, 0))).epoch == epoch_of(8, 1), "behind it"


def test_an_epoch_that_no_site_can_have_reached_is_not_believed() -> None:
    """One wrong answer of one receiver would veto a takeover, and an epoch behind it fits into no header."""
    wild = {BANK: Epoch(2**62), ChannelName("mail"): epoch_of(2, 0)}
    with pytest.raises(Refused, match="the receiver of mail was claimed in epoch 512"):
        require_not_superseded(WEST, FIRST, wild, accept_loss=False)
    assert require_not_superseded(WEST, FIRST, wild, accept_loss=True) == epoch_of(2, 0)
    assert require_not_superseded(WEST, FIRST, {BANK: Epoch(2**62)}, accept_loss=False) is None
    (said,) = told_unbelieved(FIRST, wild)
    assert said == "bank: its receiver says that it was claimed in epoch 4611686018427387904, which is not believed"
    assert not told_unbelieved(FIRST, {BANK: epoch_of(1_000_000, 0)})


def test_whoever_goes_on_from_a_copy_that_may_lack_an_epoch_gives_no_number_twice() -> None:
    """West has worked in 513 before, and its old topics hold records of that; the copy is of the time before."""
    view = SiteView(WEST, 1, FIRST, None)
    assert plan_takeover(view).epoch == epoch_of(2, 1), "nothing can be missing"
    far = epoch_of(1001, 1)
    assert plan_takeover(view, old=True).epoch == far
    assert plan_takeover(view, accept_loss=True).epoch == far
    exposed = FIRST.changed(durability=Durability.EXPOSED)
    assert plan_takeover(SiteView(WEST, 1, exposed, None), accept_loss=True).epoch == far
    replica = SiteView(EAST, 0, FIRST, Timeline(2))
    behind = OtherCopy(WEST, claimed=epoch_of(5000, 1))
    assert plan_takeover(replica, accept_loss=True, other=behind).epoch == epoch_of(5001, 0), "behind a receiver, too"


def test_a_site_that_works_below_what_a_receiver_has_met_gets_behind_it_by_a_statement() -> None:
    """Its emitters are refused at every start; before, nothing was left to do there."""
    met = OtherCopy(EAST, claimed=epoch_of(9, 0))
    live = plan_takeover(SiteView(WEST, 1, TAKEN, Timeline(2)), accept_loss=True, other=met)
    assert (live.epoch, live.expected, live.cause) == (epoch_of(1002, 1), TAKEN.current.epoch, "exposure")
    assert live.steps == (Step.OPEN_EPOCH, Step.HANDSHAKE, Step.GO_LIVE)
    begun = SiteView(WEST, 1, TAKEN.changed(phase=Phase.OPENED), Timeline(2))
    rest = plan_takeover(begun, accept_loss=True, other=met)
    assert rest.steps[:3] == (Step.OPEN_EPOCH, Step.REBUILD, Step.FILL), "what it lacks, in the new epoch"
    gated = plan_takeover(SiteView(EAST, 0, FIRST, Timeline(1)), accept_loss=True, other=met)
    assert (gated.durability, gated.cause) == (Durability.GATED, "timeline"), "it goes live behind the gate"
    assert plan_takeover(SiteView(WEST, 1, TAKEN, Timeline(2)), accept_loss=True).done


def test_of_two_sites_the_one_that_knows_the_others_epoch_works() -> None:
    past, now = Working.of(FIRST), Working.of(TAKEN)
    assert choose_working({EAST: past, WEST: now}) == (WEST,)
    assert choose_working({WEST: now, EAST: past}) == (WEST,)
    assert choose_working({EAST: past}) == (EAST,)
    assert choose_working({}) == ()


def test_no_number_decides_between_two_histories() -> None:
    two = {EAST: Working.of(ALONE), WEST: Working.of(TAKEN)}
    assert set(choose_working(two)) == {EAST, WEST}
    assert told_histories(two).startswith("TWO HISTORIES: east works in epoch 512, west works in epoch 513")


def test_an_epoch_that_waits_behind_the_gate_is_no_history_of_its_own() -> None:
    renewed = FIRST.opened(replace(ROW, epoch=epoch_of(2, 0), timeline=Timeline(2), phase=Phase.OPENED))
    assert choose_working({EAST: Working.of(renewed), WEST: Working.of(TAKEN)}) == (WEST,)
