"""A primary that came back without the end of its log: no act that rests on it begins, and the numbers are said."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.completeness import Surplus
from zerotail.core.epoch import Durability
from zerotail.core.identity import ChannelName, Lsn, epoch_of
from zerotail.core.takeover import Step
from zerotail.errors import Refused
from zerotail.operate import world
from zerotail.operate.handover import plan_handover
from zerotail.operate.rejoin import plan_rejoin
from zerotail.operate.takeover import Statements, plan_takeover
from zerotail.operate.world import World
from zerotail.ports import SiteObserved

pytestmark = pytest.mark.fast

MORE = Surplus(Lsn(1000), None, Lsn(900), messages=3, instructions=2)


def seen(*, east: int, life: str) -> dict[str, SiteObserved]:
    primary = msgspec.structs.replace(standing(), life=life)
    return {
        EAST: msgspec.structs.replace(observed(primary), flushed=Lsn(east)),
        WEST: observed(standing(timeline=None)),
    }


@pytest.mark.parametrize(
    "plan",
    [
        lambda known, seen: plan_takeover(known, seen, EAST, Statements()),
        lambda known, seen: plan_handover(known, seen, WEST),
        lambda known, seen: plan_rejoin(known, seen, WEST),
    ],
)
def test_every_act_is_refused_with_positions_and_numbers(
    configuration: Configuration, plan: Callable[[Configuration, World], object]
) -> None:
    rolled_back = World(seen(east=900, life=""), lost_ends={WEST: MORE})  # type: ignore[arg-type]
    with pytest.raises(Refused, match="east has lost the end of its log, and west holds it") as refused:
        plan(configuration, rolled_back)
    assert refused.value.code == "ZT479"
    assert "up to 0/3E8; that of east ends at 0/384" in refused.value.why
    assert "3 messages that may have been sent, 2 acknowledged instructions" in refused.value.why
    assert refused.value.tries[0].startswith("zerotail takeover plan --to west")


@pytest.mark.parametrize(
    ("east", "life", "compared"), [(900, "", True), (900, "verified", False), (1000, "", False), (1100, "", False)]
)
def test_only_an_unverified_life_that_is_behind_its_standby_has_lost_something(
    configuration: Configuration, east: int, life: str, compared: bool
) -> None:
    """Nobody listens at these addresses, so what is at stake cannot be told."""
    found = dict(world._compared(configuration, seen(east=east, life=life), world._holds_lost_end))  # type: ignore[arg-type]
    assert list(found) == ([WEST] if compared else [])
    assert all(not more.replayed for more in found.values())


ALONE = Statements(lost_site=WEST)


def test_whoever_goes_on_alone_in_a_life_that_nobody_verified_gives_no_number_twice(
    configuration: Configuration,
) -> None:
    """East has worked alone in 512, and its storage came back as it was before: its Kafka has records of 512."""
    for life, generation in (("", 1001), ("this", 2)):
        east = observed(msgspec.structs.replace(standing(), life=life))
        plan = plan_takeover(configuration, World({EAST: east, WEST: None}), EAST, ALONE)
        assert plan.steps.epoch == epoch_of(generation, 0)


def test_whoever_goes_on_alone_asks_receivers_as_everybody_does(configuration: Configuration) -> None:
    met = {ChannelName("bank"): epoch_of(5000, 1)}
    for seen in (standing(), standing(2, durability=Durability.EXPOSED, cause="exposure")):
        known = World({EAST: observed(seen), WEST: None}, claims=met)
        with pytest.raises(Refused) as refused:
            plan_takeover(configuration, known, EAST, ALONE)
        assert refused.value.code == "ZT475"
        assert any("--to east --accept-lost-site west --accept-loss" in line for line in refused.value.tries)
        plan = plan_takeover(configuration, known, EAST, Statements(lost_site=WEST, loss=True))
        assert plan.steps.epoch == epoch_of(5001, 0), "behind it, also where it worked alone already"
        assert plan.steps.steps == (Step.STOP_WAITING, Step.OPEN_EPOCH, Step.HANDSHAKE, Step.GO_LIVE)
        assert plan.shown.needs == ("--accept-lost-site west", "--accept-loss")
