"""A takeover is due after a silence without a break, and never before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.core.watch import Sign, Watch

pytestmark = pytest.mark.fast

LOOKS = st.lists(st.tuples(st.sampled_from(Sign), st.floats(0.01, 5.0)), max_size=60)


def test_a_silence_that_lasts_long_enough_is_due_exactly_then() -> None:
    watch = Watch(10.0).seen(Sign.SILENT, 100.0)
    assert not watch.is_due(109.9)
    assert watch.is_due(110.0)


def test_a_second_silent_look_does_not_start_the_silence_anew() -> None:
    watch = Watch(10.0).seen(Sign.SILENT, 100.0).seen(Sign.SILENT, 109.0)
    assert watch.is_due(110.0)


def test_one_sign_of_life_starts_it_anew() -> None:
    watch = Watch(10.0).seen(Sign.SILENT, 100.0).seen(Sign.ALIVE, 109.0).seen(Sign.SILENT, 109.5)
    assert not watch.is_due(119.4)
    assert watch.is_due(119.5)


def test_who_is_not_well_itself_concludes_nothing() -> None:
    watch = Watch(10.0).seen(Sign.SILENT, 100.0).seen(Sign.UNKNOWN, 109.0)
    assert not watch.is_due(1000.0)


@given(LOOKS, st.floats(0.5, 20.0))
def test_it_is_due_only_when_every_look_of_the_last_seconds_was_silent(
    looks: list[tuple[Sign, float]], after: float
) -> None:
    watch, now, history = Watch(after), 0.0, []
    for sign, pause in looks:
        now += pause
        watch = watch.seen(sign, now)
        history.append((now, sign))
        if watch.is_due(now):
            begun = next(at for at, one in history if at == watch.silent_since)
            assert now - begun >= after
            assert all(one is Sign.SILENT for at, one in history if at >= begun)
