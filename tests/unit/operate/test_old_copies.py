"""A plan to take over a copy: its age is said, and asked about where it is old."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.epoch import Durability
from zerotail.core.identity import ChannelName, Timeline, epoch_of
from zerotail.core.staleness import CopyAge
from zerotail.errors import Refused, Unavailable
from zerotail.operate.plan import require_accepted, run_line
from zerotail.operate.rejoin import plan_rejoin
from zerotail.operate.takeover import Statements, plan_takeover
from zerotail.operate.world import World

pytestmark = pytest.mark.fast

OLD = CopyAge(400.0, 390.0, 1000.0)


def lost(age: CopyAge, **known: object) -> World:
    return World({EAST: None, WEST: observed(standing(timeline=None))}, ages={WEST: age}, **known)  # type: ignore[arg-type]


def test_the_age_is_said_and_does_not_change_the_plan(configuration: Configuration) -> None:
    plans = [plan_takeover(configuration, lost(CopyAge(s, s, 1000.0)), WEST, Statements()).shown for s in (1.0, 9.0)]
    assert plans[0].id == plans[1].id
    assert plans[0].age[0].startswith("west: the log up to 0/3E8, its last change of ")
    assert plans[0].age[0].endswith("UTC, 1 s ago")
    assert plans[1].age[1].startswith("west: its last heartbeat of ")


def test_an_old_copy_is_taken_over_by_a_statement_only(configuration: Configuration) -> None:
    with pytest.raises(Refused) as refused:
        plan_takeover(configuration, lost(OLD), WEST, Statements())
    assert refused.value.code == "ZT474"
    assert "west: its last heartbeat of " in refused.value.why
    stated = Statements(age=timedelta(minutes=7))
    shown = plan_takeover(configuration, lost(OLD), WEST, stated).shown
    assert shown.needs == ("--accept-age 7min",)
    require_accepted(shown, stated.flags)
    assert run_line(shown).endswith(" --accept-age 7min")
    assert Statements.typed(stated.flags) == stated
    assert shown.epoch == epoch_of(1001, 1), "the copy may lack epochs, and no number is given twice"
    fresh = plan_takeover(configuration, lost(CopyAge(1.0, 1.0, 9.0)), WEST, stated).shown
    assert (fresh.needs, fresh.epoch) == ((), epoch_of(2, 1)), "as by the line to type, which says no age"


def test_a_copy_whose_age_cannot_be_read_is_not_taken_for_a_new_one(configuration: Configuration) -> None:
    with pytest.raises(Unavailable, match="how old the copy at west is could not be read"):
        plan_takeover(configuration, replace(lost(OLD), ages={}), WEST, Statements())
    there = World({EAST: observed(standing()), WEST: observed(standing(timeline=None))})
    (said,) = plan_takeover(configuration, there, WEST, Statements()).shown.age
    assert "nobody knows how old it is" in said


def test_a_copy_that_the_other_database_proves_complete_is_not_old(configuration: Configuration) -> None:
    world = World({EAST: observed(standing()), WEST: observed(standing(timeline=None))}, ages={WEST: OLD})
    assert plan_takeover(configuration, world, WEST, Statements()).shown.needs == ("--accept-unfenced-site east",)


def test_what_a_receiver_has_met_is_asked_before_anything_else(configuration: Configuration) -> None:
    world = lost(CopyAge(1.0, 1.0, 9.0), claims={ChannelName("bank"): epoch_of(2, 0)})
    with pytest.raises(Refused) as refused:
        plan_takeover(configuration, world, WEST, Statements())
    assert refused.value.code == "ZT475"
    assert plan_takeover(configuration, world, WEST, Statements(loss=True)).steps.epoch == epoch_of(1001, 1)


def test_two_histories_have_no_active_site(configuration: Configuration) -> None:
    world = World(
        {
            EAST: observed(standing(2, durability=Durability.EXPOSED)),
            WEST: observed(standing(2, WEST, durability=Durability.EXPOSED, timeline=Timeline(1))),
        }
    )
    assert world.find_active() is None
    assert "east works in epoch 512, west works in epoch 513" in world.told_histories()
    for site in (EAST, WEST):
        with pytest.raises(Refused) as refused:
            plan_rejoin(configuration, world, site)
        assert refused.value.code == "ZT437"
