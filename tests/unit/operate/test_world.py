"""What is said of a site that says nothing of use: that it does not answer, only if so."""

from __future__ import annotations

import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.errors import Refused, Unavailable, ZerotailError
from zerotail.operate.rejoin import plan_rejoin
from zerotail.operate.world import World

pytestmark = pytest.mark.fast

SILENT = Unavailable("the database at w:5432 does not answer: timeout expired", code="ZT301")
SHUT = Unavailable('the database at w:5432 answers, and lets nobody in: database "x" does not exist', code="ZT313")
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
        (NO_RIGHT, f"west: {NO_RIGHT.message}", True),
        (EMPTY, "west: its database answers, and our tables are missing", True),
    ],
)
def test_only_what_does_not_answer_does_not_answer(why: ZerotailError | None, told: str, answers: bool) -> None:
    world = world_with(why)
    assert (world.told(WEST), world.answers(WEST)) == (told, answers)
    with pytest.raises(ZerotailError) as raised:
        world.require(WEST)
    assert raised.value.exit_code == (3 if isinstance(why, Refused) else 4)
    if isinstance(why, Refused):
        assert raised.value.tries == why.tries


@pytest.mark.parametrize("why", [SHUT, NO_RIGHT])
def test_a_copy_that_nobody_has_seen_is_not_replaced_as_a_lost_one(
    configuration: Configuration, why: ZerotailError
) -> None:
    with pytest.raises(Refused) as raised:
        plan_rejoin(configuration, world_with(why), WEST)
    assert raised.value.code == "ZT316"
