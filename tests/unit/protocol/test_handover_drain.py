"""A handover whose source does not drain, or does not shut down, says in which state it leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.standings import EAST, FIRST, WEST, observed, standing
from zerotail.errors import Unfinished
from zerotail.failover.handover import LOOKS, hand_over
from zerotail.failover.takeover import Pipeline
from zerotail.ports import ChangeEpoch, Done, Drained, ObserveDrained, ObserveSite, Refused, ShutDown, Unreachable

pytestmark = pytest.mark.fast


def hand_over_until(answers: Callable[[int], object], last: object) -> tuple[str, int]:
    """The error it ended with, when the looks at what is left are answered so, and how many looks there were."""
    story = hand_over(Pipeline([], {}, {}), EAST, WEST, 1)
    looks = changes = 0
    answer: Any = None
    try:
        while True:
            effect = story.send(answer)
            answer = None
            match effect:
                case ObserveSite():
                    answer = observed(standing(timeline=None if effect.site == WEST else FIRST))
                case ObserveDrained():
                    looks += 1
                    answer = answers(looks)
                case ChangeEpoch():
                    changes += 1
                    answer = Done() if changes == 1 else last
                case ShutDown():
                    answer = Refused("it still answers")
    except Unfinished as error:
        return error.code, looks


BUSY = Drained(instructions=5, emissions=0, doubts=0)
EMPTY = Drained(instructions=0, emissions=0, doubts=0)


def test_one_that_never_gets_done_is_told_to_go_on() -> None:
    assert hand_over_until(lambda _: BUSY, Done()) == ("ZT424", LOOKS + 1)


def test_one_that_falls_silent_is_given_up_soon_and_not_said_to_go_on() -> None:
    code, looks = hand_over_until(lambda number: BUSY if number < 5 else Unreachable(), Unreachable())
    assert code == "ZT425"
    assert looks < 20


def test_a_short_silence_is_no_silence() -> None:
    answered = hand_over_until(lambda number: Unreachable() if number % 5 else BUSY, Done())
    assert answered == ("ZT424", LOOKS + 1)


def test_one_that_does_not_shut_down_takes_submissions_again() -> None:
    assert hand_over_until(lambda _: EMPTY, Done()) == ("ZT421", 2)


def test_one_that_does_not_shut_down_and_falls_silent_is_not_said_to_go_on() -> None:
    assert hand_over_until(lambda _: EMPTY, Unreachable()) == ("ZT425", 2)
