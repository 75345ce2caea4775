"""One direction of the link: how much it takes in, and how it shares a speed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.lab.link.protocol import CutMode
from zerotail.lab.link.way import Way

pytestmark = pytest.mark.fast

MEGABYTE = 1024 * 1024


@given(waiting=st.integers(0, 200 * MEGABYTE), latency_ms=st.floats(0, 60_000))
def test_a_lane_never_gets_room_beyond_64_megabytes(waiting: int, latency_ms: float) -> None:
    room = Way("east->west", latency_seconds=latency_ms / 1000).room_bytes(waiting)
    assert room >= 0
    assert room == 0 or room + waiting <= 64 * MEGABYTE


def test_a_delayed_lane_has_room_for_what_is_in_flight() -> None:
    assert Way("east->west", latency_seconds=0.1).room_bytes(0) >= 0.1 * 500 * MEGABYTE


def test_a_cut_way_takes_nothing_in_even_while_it_holds() -> None:
    assert Way("east->west", cut=CutMode.HANG, hold_limit_bytes=100).room_bytes(0) == 0


@given(held=st.integers(0, 300), limit=st.integers(1, 200))
def test_a_hold_has_one_limit_for_all_lanes(held: int, limit: int) -> None:
    assert Way("east->west", hold_limit_bytes=limit, held_bytes=held).room_bytes(0) == max(0, limit - held)


@given(
    speed=st.integers(1, 10**9),
    wishes=st.lists(st.integers(1, 10**6), min_size=1, max_size=50),
    now=st.floats(0, 10**6),
)
def test_a_throttled_way_grants_something_to_everybody_in_turn_and_never_more_than_its_speed(
    speed: int, wishes: list[int], now: float
) -> None:
    way = Way("east->west", bytes_per_second=speed)
    granted_bytes, previous = 0, now
    for wish in wishes:
        granted, moment = way.reserve(wish, now)
        assert 1 <= granted <= wish
        assert moment >= previous
        granted_bytes, previous = granted_bytes + granted, moment
    seconds = previous - now
    assert granted_bytes <= seconds * speed * (1 + 1e-6) + speed * 1e-6


def test_a_new_speed_voids_what_was_promised_at_the_old_one() -> None:
    way = Way("east->west", bytes_per_second=1)
    for _ in range(100):
        way.reserve(1, 0.0)
    way.throttle(1000)
    assert way.reserve(10, 0.0) == (10, 0.01)
