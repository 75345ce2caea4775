"""A group is judged by the trend of its positions, whatever its speed, its clients and its backlog."""

from __future__ import annotations

import random

import pytest

from zerotail.consume.liveness import Cause, Liveness, Look, PartitionSeen, judge
from zerotail.consume.places import Partition

pytestmark = pytest.mark.fast

P0, P1 = Partition("payments", 0), Partition("payments", 1)


def look(
    at: float,
    *places: tuple[int, int],
    members: tuple[str, ...] = ("m-1",),
    owner: str = "m-1",
    rebalancing: bool = False,
) -> Look:
    """A look at partitions 0, 1, …: position and end of each."""
    seen = tuple(PartitionSeen(Partition("payments", n), *place, owner) for n, place in enumerate(places))
    return Look(at, rebalancing, members, seen)


def history(
    consumed_per_second: float,
    produced_per_second: float,
    *,
    backlog: int = 0,
    stores_every: float = 5.0,
    seconds: float = 12.0,
    phase: float = 0.0,
) -> list[Look]:
    """A member that works at some speed and stores its position from time to time, looked at once a second."""
    looks = []
    done = float(-backlog)
    stored, stored_at, now = int(done), phase - stores_every, 0.0
    while now <= seconds:
        end = produced_per_second * now
        if now - stored_at >= stores_every:
            stored, stored_at = int(done), now
        if now == int(now):
            looks.append(look(now, (10_000 + stored, 10_000 + int(end))))
        now = round(now + 0.1, 1)
        done = min(produced_per_second * now, done + consumed_per_second * 0.1)
    return looks


@pytest.mark.parametrize("rate", [1, 30, 1_000, 50_000])
@pytest.mark.parametrize("stores_every", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.9])
def test_a_member_that_keeps_up_is_running_however_often_it_stores_its_position(
    rate: float, stores_every: float, phase: float
) -> None:
    verdict = judge("g", history(rate * 2, rate, stores_every=stores_every, phase=phase))
    assert verdict.liveness is Liveness.RUNNING, verdict.why
    assert verdict.is_well


@pytest.mark.parametrize("stores_every", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.9])
def test_a_member_that_is_slower_than_what_comes_is_slow(stores_every: float, phase: float) -> None:
    verdict = judge("g", history(100, 1_000, stores_every=stores_every, phase=phase, seconds=16))
    assert verdict.liveness is Liveness.SLOW, verdict.why
    assert not verdict.is_well
    assert verdict.cause is Cause.NONE


def test_a_backlog_that_shrinks_is_running() -> None:
    assert judge("g", history(500, 100, backlog=1_000_000)).liveness is Liveness.RUNNING


def test_members_that_live_and_do_not_get_on_are_stalled() -> None:
    verdict = judge("g", [look(at, (50, 60 + at)) for at in range(5)])
    assert (verdict.liveness, verdict.cause) == (Liveness.STALLED, Cause.NO_PROGRESS)
    assert "m-1 sends heartbeats and does not get on: 14 records are left in payments/0" in verdict.why


def test_one_partition_that_stands_still_is_found_beside_one_that_moves() -> None:
    verdict = judge("g", [look(at, (50 + at, 50 + at), (7, 9)) for at in range(5)])
    assert verdict.liveness is Liveness.STALLED
    assert [one.liveness for one in verdict.partitions] == [Liveness.RUNNING, Liveness.STALLED]
    assert "payments/1" in verdict.why
    assert "payments/0" not in verdict.why


def test_a_group_without_members_that_has_work_is_stopped() -> None:
    verdict = judge("g", [look(at, (50, 60), members=(), owner="") for at in range(3)])
    assert (verdict.liveness, verdict.cause) == (Liveness.STOPPED, Cause.DEAD)
    assert "nobody is in the group, and 10 records are left" in verdict.why
    nothing = judge("g", [Look(at, False, (), ()) for at in range(3)])
    assert nothing.liveness is Liveness.STOPPED


def test_a_partition_that_no_member_has_is_stopped() -> None:
    verdict = judge("g", [look(at, (50, 60), owner="") for at in range(3)])
    assert verdict.liveness is Liveness.STOPPED
    assert "nobody has these partitions" in verdict.why


def test_nothing_to_do_is_idle_with_members_and_without() -> None:
    assert judge("g", [look(at, (60, 60)) for at in range(3)]).liveness is Liveness.IDLE
    verdict = judge("g", [look(at, (60, 60), members=(), owner="") for at in range(3)])
    assert verdict.liveness is Liveness.IDLE
    assert judge("g", [Look(at, False, ("m-1",), ()) for at in range(3)]).liveness is Liveness.IDLE


def test_a_group_that_hands_partitions_out_is_rebalancing_and_a_lost_member_is_named() -> None:
    before = look(0, (50, 60), (7, 9), members=("m-1", "m-2"))
    verdict = judge("g", [before, look(1, (50, 70), (7, 9), members=("m-1",), owner="", rebalancing=True)])
    assert (verdict.liveness, verdict.cause) == (Liveness.REBALANCING, Cause.DEAD)
    assert "after m-2 was lost" in verdict.why
    joined = judge("g", [look(0, (50, 60)), look(1, (50, 70), members=("m-1", "m-2"), owner="", rebalancing=True)])
    assert (joined.liveness, joined.cause) == (Liveness.REBALANCING, Cause.NONE)


def test_what_came_during_the_last_look_is_no_stall() -> None:
    assert judge("g", [look(0, (60, 60)), look(1, (60, 60)), look(2, (60, 63))]).liveness is Liveness.RUNNING


def test_positions_that_move_without_members_are_running() -> None:
    # A client that stores offsets and was never a member: its positions say that it lives.
    looks = [look(at, (50 + 10 * at, 100), members=(), owner="") for at in range(4)]
    assert judge("g", looks).liveness is Liveness.RUNNING


def test_one_look_shows_no_trend() -> None:
    with pytest.raises(ValueError, match="no trend"):
        judge("g", [look(0, (1, 2))])


def test_the_verdict_does_not_depend_on_the_size_of_the_numbers() -> None:
    chance = random.Random(5)
    for _ in range(200):
        scale = 10 ** chance.uniform(0.5, 5)
        phase = chance.uniform(0, 0.9)
        keeps_up = history(scale * 1.5, scale, stores_every=chance.choice([0.5, 1, 3, 5]), phase=phase, seconds=20)
        falls_back = history(scale * 0.2, scale, stores_every=chance.choice([0.5, 1, 3, 5]), phase=phase, seconds=20)
        assert judge("g", keeps_up).liveness is Liveness.RUNNING
        assert judge("g", falls_back).liveness is Liveness.SLOW
