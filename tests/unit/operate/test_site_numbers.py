"""Sites and their numbers: who gets which, and who is refused for what a database does not know."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.standings import EAST, NUMBERS, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.identity import Epoch, SiteName, epoch_of
from zerotail.core.site import number_sites
from zerotail.core.staleness import CopyAge
from zerotail.errors import Refused
from zerotail.operate.handover import plan_handover
from zerotail.operate.rejoin import plan_rejoin
from zerotail.operate.takeover import Statements, plan_takeover
from zerotail.operate.world import World
from zerotail.ports import SiteObserved

pytestmark = pytest.mark.fast

ALONE = Statements(lost_site=WEST)
ACTS: dict[str, Callable[[Configuration, World], object]] = {
    "takeover": lambda configuration, world: plan_takeover(configuration, world, WEST, Statements()),
    "going on alone": lambda configuration, world: plan_takeover(configuration, world, EAST, ALONE),
    "handover": lambda configuration, world: plan_handover(configuration, world, WEST),
    "rejoin": lambda configuration, world: plan_rejoin(configuration, world, WEST),
}


def world(**numbers: int) -> World:
    """East works and west follows, and their database knows these sites."""
    known = {SiteName(site): number for site, number in numbers.items()}
    primary, copy = observed(standing()), observed(standing(timeline=None))
    return World(
        {
            EAST: SiteObserved(primary.standing, primary.flushed, numbers=known),
            WEST: SiteObserved(copy.standing, copy.flushed, numbers=known),
        }
    )


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("numbers", [{"east": 0, "north": 1}, {"east": 0}, {"east": 0, "west": 1, "north": 2}])
def test_a_configuration_with_other_sites_than_the_database_is_refused(
    configuration: Configuration, act: str, numbers: dict[str, int]
) -> None:
    with pytest.raises(Refused) as refused:
        ACTS[act](configuration, world(**numbers))
    assert refused.value.code == "ZT438"
    assert f"the database knows {' and '.join(sorted(numbers))}" in refused.value.message


@pytest.mark.parametrize("act", ACTS)
def test_a_database_that_knows_no_numbers_is_told_to_apply_the_schema_at_its_primary(
    configuration: Configuration, act: str
) -> None:
    with pytest.raises(Refused) as refused:
        ACTS[act](configuration, world())
    assert refused.value.code == "ZT439"
    assert list(refused.value.tries) == ["zerotail schema apply --site east"]


def test_the_number_of_an_epoch_is_the_one_in_the_database_whatever_the_order_of_the_file(
    configuration: Configuration,
) -> None:
    for east, west in ((0, 1), (1, 0), (7, 3)):
        ages = {WEST: CopyAge(1.0, 1.0, 9.0)}
        seen = World({EAST: None, WEST: world(east=east, west=west).of(WEST)}, ages=ages)
        planned = plan_takeover(configuration, seen, WEST, Statements())
        assert planned.steps.epoch == epoch_of(2, west)


@pytest.mark.parametrize(
    ("opened", "numbers"),
    [
        ([], {"east": 0, "west": 1}),
        ([(256, "east")], {"east": 0, "west": 1}),
        ([(257, "west")], {"west": 1, "east": 0}),
        ([(257, "east")], {"east": 1, "west": 0}),
        ([(513, "west"), (256, "east"), (768, "east")], NUMBERS),
        ([(256, "west"), (512, "east")], {"west": 0, "east": 1}),
        ([(256, "north")], {"north": 0, "east": 1, "west": 2}),
    ],
    ids=["nothing begun", "one", "the second", "the other way round", "both", "one number twice", "a stranger"],
)
def test_sites_keep_the_numbers_of_their_epochs(opened: list[tuple[int, str]], numbers: dict[str, int]) -> None:
    assert number_sites((EAST, WEST), [(Epoch(epoch), SiteName(site)) for epoch, site in opened]) == numbers
