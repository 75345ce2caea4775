"""What is said of a site that says nothing of use: that it does not answer, only if so."""

from __future__ import annotations

import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.standby import Commits, Follower
from zerotail.errors import Refused, Unavailable, ZerotailError
from zerotail.operate.handover import plan_handover
from zerotail.operate.rejoin import plan_rejoin
from zerotail.operate.world import World

pytestmark = pytest.mark.fast

SILENT = Unavailable("the database at w:5432 does not answer: timeout expired", code="ZT301")
SHUT = Unavailable('the database at w:5432 answers, and lets nobody in: database "x" does not exist', code="ZT313")
STARTS = Unavailable(
    "the database at w:5432 answers, and lets nobody in: the database system is starting up", code="ZT313"
)
NO_RIGHT = Refused("the database at w:5432 declined: permission denied", code="ZT303", tries=("grant it",))
EMPTY = Refused("its database answers, and our tables are missing.", code="ZT315", tries=("zerotail schema apply",))


def world_with(why: ZerotailError | None) -> World:
    there = observed(standing())
    return World({EAST: there, WEST: None}, silence={} if why is None else {WEST: why})


@pytest.mark.parametrize(
    ("why", "told", "answers"),
    [
        (None, "west: its database does not answer", False),
        (SILENT, "west: its database does not answer", False),
        (SHUT, f"west: {SHUT.message}", True),
        (STARTS, f"west: {STARTS.message}", True),
        (NO_RIGHT, f"west: {NO_RIGHT.message}", True),
        (EMPTY, "west: its database answers, and our tables are missing", True),
    ],
)
def test_only_what_does_not_answer_does_not_answer(why: ZerotailError | None, told: str, answers: bool) -> None:
    world = world_with(why)
    assert (world.told(WEST), world.answers(WEST)) == (told, answers)
    with pytest.raises(ZerotailError) as raised:
        world.require(WEST)
    assert raised.value.exit_code == (4 if why in (None, SILENT, STARTS) else 3)
    assert ("does not answer" in raised.value.message) != answers
    if isinstance(why, Refused):
        assert raised.value.tries == why.tries


@pytest.mark.parametrize("why", [SHUT, NO_RIGHT])
def test_a_copy_that_nobody_has_seen_is_not_replaced_as_a_lost_one(
    configuration: Configuration, why: ZerotailError
) -> None:
    with pytest.raises(Refused) as raised:
        plan_rejoin(configuration, world_with(why), WEST)
    assert raised.value.code == "ZT316"


@pytest.mark.parametrize("why", [SHUT, NO_RIGHT, EMPTY])
def test_a_handover_says_what_a_database_answers(configuration: Configuration, why: ZerotailError) -> None:
    with pytest.raises(Refused) as raised:
        plan_handover(configuration, world_with(why), WEST)
    assert (raised.value.code, raised.value.message) == (why.code, f"west: {why.message}")


FOLLOWS = (Follower("west", "streaming", "async", 0),)


@pytest.mark.parametrize(
    ("commits", "follows", "message"),
    [
        (Commits("lyon", FOLLOWS), True, "every commit of east hangs: "),
        (Commits("", FOLLOWS), True, "commits of east wait for nobody."),
        (Commits("", ()), False, "commits of east would not wait for west: it is empty."),
        (Commits("lyon", ()), False, "commits of east would not wait for west: synchronous_standby_names is lyon."),
    ],
)
def test_an_act_names_the_setting_that_commits_need(commits: Commits, follows: bool, message: str) -> None:
    world = World({EAST: observed(standing()), WEST: None}, commits={EAST: commits})
    with pytest.raises(Refused) as raised:
        world.require_commits(EAST, WEST, follows=follows)
    assert raised.value.code == "ZT449"
    assert raised.value.message.startswith(message)
    assert raised.value.tries[0].startswith("alter system set synchronous_standby_names = 'FIRST 1 (west)'; select pg_")
    World(world.sites, commits={EAST: Commits("FIRST 1 (west)", ())}).require_commits(EAST, WEST, follows=False)
