"""What a copy holds that another history lacks, and when that can be said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zerotail.core.chain import GENESIS
from zerotail.core.completeness import (
    Surplus,
    count_epochs,
    count_instructions,
    count_segments,
    find_beyond,
    first_unknown,
    may_hold_more,
    require_complete,
    require_replaceable,
    same_way,
)
from zerotail.core.epoch import Cut, Durability, EpochRow, HeadCut, Lineage, Phase, next_epoch
from zerotail.core.identity import (
    Lsn,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    epoch_of,
)
from zerotail.core.takeover import OtherCopy, SiteView, Step, plan_exposure, plan_takeover
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")
ROW = EpochRow(epoch_of(1, 0), EAST, Timeline(1), Durability.GATED, Phase.LIVE, Cut())
FIRST = Lineage((ROW,))
RENEWED = FIRST.opened(replace(ROW, epoch=epoch_of(2, 0), timeline=Timeline(2), phase=Phase.OPENED, cause="timeline"))
WITHIN = Surplus(Lsn(90), Lsn(90), Lsn(200), messages=3)


def held(serial: int, segment: int) -> Cut:
    source = (ProducerNumber(1), PartitionNumber(0))
    head = HeadCut(StageName("s"), PartitionNumber(0), SegmentNumber(segment), Position(0), GENESIS)
    return Cut({source: Serial(serial), (ProducerNumber(2), PartitionNumber(0)): Serial(serial)}, (head,))


def view(lineage: Lineage, timeline: int) -> SiteView:
    return SiteView(EAST, 0, lineage, Timeline(timeline))


def test_only_a_copy_of_the_active_sites_epochs_can_hold_what_was_behind_its_gate() -> None:
    assert not may_hold_more(FIRST, None, FIRST, EAST, Timeline(1)), "it knows the epoch of this very timeline"
    assert may_hold_more(FIRST, None, FIRST, EAST, Timeline(2)), "promoted, and no epoch yet"
    assert may_hold_more(FIRST, None, RENEWED, EAST, Timeline(2))
    assert not may_hold_more(RENEWED, None, RENEWED, EAST, Timeline(2))
    assert not may_hold_more(FIRST, None, FIRST, EAST, None), "a standby is not active"
    at_west = FIRST.opened(replace(ROW, epoch=epoch_of(2, 1), site=WEST, timeline=Timeline(2)))
    assert not may_hold_more(at_west, None, RENEWED, EAST, Timeline(2)), "its own epoch: never behind the gate"
    assert not may_hold_more(FIRST, None, at_west, WEST, Timeline(2)), "the tail of a site that was lost"
    assert may_hold_more(FIRST, None, FIRST, WEST, Timeline(3)), "west promoted, and east a standby: of what?"
    assert not may_hold_more(FIRST, Timeline(1), FIRST, WEST, Timeline(3)), "a takeover that was begun"


def test_an_epoch_that_was_opened_again_on_another_timeline_is_another_one() -> None:
    lost = FIRST.opened(replace(ROW, epoch=epoch_of(2, 0), timeline=Timeline(2)))
    again = FIRST.opened(replace(ROW, epoch=epoch_of(2, 0), timeline=Timeline(3)))
    assert may_hold_more(lost, None, again, EAST, Timeline(3))
    assert first_unknown(lost, again) is again.current
    assert count_epochs(lost, again) == 1
    assert count_epochs(FIRST, again) == 0
    assert first_unknown(again, again) is None


def test_positions_say_something_only_where_both_went_the_same_way() -> None:
    assert same_way(FIRST, FIRST, Timeline(2))
    assert same_way(FIRST, RENEWED, Timeline(2))
    assert not same_way(FIRST, FIRST, Timeline(3)), "two changes: where the first one was is not known"
    assert not same_way(FIRST, FIRST, Timeline(1)), "no change at all"
    other = Lineage((replace(ROW, epoch=epoch_of(9, 0)),))
    assert not same_way(other, RENEWED, Timeline(2))
    assert WITHIN.nothing
    assert not replace(WITHIN, same_way=False).nothing
    assert not replace(WITHIN, flushed=Lsn(91)).nothing
    assert not replace(WITHIN, went_on=None).nothing
    beyond = replace(WITHIN, flushed=Lsn(91), messages=0)
    assert beyond.nothing, "log that has nothing of ours"
    assert not replace(beyond, replayed=False).nothing, "nobody can tell"
    assert not replace(beyond, claims=1).nothing


def test_what_is_at_stake_is_counted() -> None:
    assert count_instructions(held(9, 4), held(5, 4), [ProducerNumber(2)]) == 4, (
        "messages of a stage are no instructions"
    )
    assert count_instructions(held(5, 4), held(9, 4), []) == 0
    assert count_segments(held(9, 4), held(9, 1)) == 3
    assert count_segments(held(9, 4), Cut()) == 4


@pytest.mark.parametrize("require", [require_complete, require_replaceable])
def test_a_refusal_names_both_positions_what_is_at_stake_and_the_way_that_loses_nothing(require: object) -> None:
    more = Surplus(Lsn(0x5000100), Lsn(0x4F00028), Lsn(0x5000200), messages=2127, instructions=1, epochs=1)
    with pytest.raises(Refused) as refused:
        require(WEST, EAST, more, accept_loss=False)  # type: ignore[operator]
    why = refused.value.why
    assert "west holds the log up to 0/5000100; east went on at 0/4F00028, and holds its own up to 0/5000200" in why
    assert "at stake: 2127 messages that may have been sent, 1 acknowledged instruction, 1 epoch" in why
    assert refused.value.tries[0].startswith("zerotail takeover plan --to west")
    require(WEST, EAST, more, accept_loss=True)  # type: ignore[operator]
    require(WEST, EAST, WITHIN, accept_loss=False)  # type: ignore[operator]


def test_what_was_not_replayed_and_where_it_went_on_are_said_as_unknown() -> None:
    positions, stake = Surplus(Lsn(9), None, Lsn(8), replayed=False).told(WEST, EAST)
    assert "east left it earlier" in positions
    assert stake.endswith("0 acknowledged instructions, and what west has not replayed yet")


@pytest.mark.parametrize(("lineage", "timeline"), [(FIRST, 2), (RENEWED, 2)])
def test_a_replica_takes_over_inside_a_site_unless_the_other_site_holds_more(lineage: Lineage, timeline: int) -> None:
    here = view(lineage, timeline)
    for copy in (None, OtherCopy(WEST, WITHIN)):
        assert Step.GO_LIVE in plan_takeover(here, other=copy).steps
    more = OtherCopy(WEST, replace(WITHIN, flushed=Lsn(91)))
    with pytest.raises(Refused) as refused:
        plan_takeover(here, other=more)
    assert refused.value.code == "ZT470"
    assert Step.GO_LIVE in plan_takeover(here, other=more, accept_loss=True).steps


def test_a_replica_that_nobody_has_promoted_is_not_promoted_by_a_takeover() -> None:
    """What it lacks can be compared behind its promotion only, and that is the business of whoever runs the site."""
    here = SiteView(EAST, 0, FIRST, None, Lsn(1000))
    for other, accept_loss in ((OtherCopy(WEST), False), (None, True)):
        with pytest.raises(Refused) as refused:
            plan_takeover(here, other=other, accept_loss=accept_loss)
        assert refused.value.code == "ZT446"
        assert "select pg_promote()" in refused.value.tries[0]
    with pytest.raises(Refused, match="nobody has promoted"):
        plan_exposure(here, accept_loss=True)
    at_west = SiteView(WEST, 1, FIRST, None, Lsn(1000))
    assert Step.PROMOTE in plan_takeover(at_west, other=OtherCopy(EAST)).steps, "the other site's standby"


def test_a_replica_of_an_exposed_site_needs_a_statement_and_gives_no_number_twice() -> None:
    alone = FIRST.opened(replace(ROW, epoch=epoch_of(2, 0), durability=Durability.EXPOSED, cause="exposure"))
    with pytest.raises(Refused) as refused:
        plan_takeover(view(alone, 2))
    assert refused.value.code == "ZT472"
    plan = plan_takeover(view(alone, 2), accept_loss=True)
    assert plan.epoch == next_epoch(alone, 0, some_may_be_lost=True) > epoch_of(100, 0)
    assert plan.durability is Durability.EXPOSED


def test_a_replica_that_never_met_the_gate_goes_on_alone_only_by_a_statement_too() -> None:
    with pytest.raises(Refused) as refused:
        plan_exposure(view(RENEWED, 2))
    assert refused.value.code == "ZT472"
    assert plan_exposure(view(RENEWED, 2), accept_loss=True).epoch > epoch_of(100, 0)
    assert plan_exposure(view(FIRST, 1)).epoch == epoch_of(2, 0)


def test_a_replica_that_has_not_even_the_epoch_in_which_its_site_took_over_is_refused() -> None:
    taken = FIRST.opened(replace(ROW, epoch=epoch_of(2, 1), site=WEST, timeline=Timeline(2)))
    here = SiteView(WEST, 1, FIRST, Timeline(3))
    assert find_beyond(FIRST, taken) is None
    beyond = find_beyond(taken, FIRST)
    assert beyond is taken.current
    with pytest.raises(Refused) as refused:
        plan_takeover(here, other=OtherCopy(EAST, beyond=beyond))
    assert (refused.value.code, refused.value.tries[0].split("    ")[0]) == (
        "ZT473",
        "zerotail takeover plan --to east",
    )
    forced = plan_takeover(here, other=OtherCopy(EAST, beyond=beyond), accept_loss=True)
    assert forced.epoch > epoch_of(100, 0), "513 is not given a second time"


def test_an_epoch_that_never_left_the_gate_holds_nobody_up() -> None:
    assert find_beyond(RENEWED, FIRST) is None
    assert find_beyond(RENEWED.changed(phase=Phase.LIVE), FIRST) is not None
    assert find_beyond(RENEWED.changed(durability=Durability.EXPOSED), FIRST) is not None
    taken = FIRST.opened(replace(RENEWED.current, epoch=epoch_of(2, 1), site=WEST, cause="takeover"))
    assert find_beyond(taken, FIRST) is not None, "a rejoin may have put it behind the gate before it was live"
