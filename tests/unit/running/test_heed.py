"""What is heard of a story that waits: the reason, until something was sent."""

from __future__ import annotations

from threading import Event
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail import ports
from zerotail.core.backoff import pause_before
from zerotail.core.emission import Lane
from zerotail.core.gate import Asker, Release
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Incarnation,
    Lsn,
    PartitionNumber,
    Timeline,
    epoch_of,
)
from zerotail.wiring import Backoff, SiteAdapters, drive

pytestmark = pytest.mark.fast

LANE = Lane(ChannelName("bank"), PartitionNumber(0))
ASKER = Asker(7, Timeline(1), epoch_of(1, 0))
SEND = ports.SendEmissions(
    LANE, ASKER.epoch, Incarnation(1), EmissionNumber(1), [b"{}"], EmissionNumber(0), Release(ASKER, Lsn(9), None)
)


class Answers:
    """Answers effects in turn."""

    def __init__(self, *answers: Any) -> None:
        self._left = list(answers)

    def carry_out(self, _effect: ports.Effect) -> Any:
        return self._left.pop(0)


def _story() -> ports.Story[None]:
    yield ports.Pause("the gate is closed")
    yield ports.AskGate()
    yield ports.Pause("the gate is closed")
    yield ports.ReadLane(LANE, EmissionNumber(0), 1)
    for _ in range(2):
        yield SEND


def _heard(*answers: Any) -> list[str]:
    heard: list[str] = []
    drive(_story(), cast("SiteAdapters", Answers(*answers)), Event(), heard.append)
    return heard


def test_a_question_in_between_does_not_sound_like_work() -> None:
    nothing = ports.Unreachable()
    assert _heard(nothing, nothing, nothing, nothing) == ["the gate is closed"] * 2


def test_what_was_accepted_does() -> None:
    nothing = ports.Unreachable()
    accepted = ports.Accepted(EmissionNumber(1))
    assert _heard(nothing, nothing, nothing, accepted) == ["the gate is closed"] * 2 + [""]


class Clock(Event):
    """An event that nobody sets; it notes how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0.0)
        return False


def _pauses(*, idle: bool) -> ports.Story[None]:
    for _ in range(20):
        yield ports.Pause("nothing", idle=idle)
    yield SEND
    yield ports.Pause("nothing", idle=idle)


def test_who_has_nothing_to_do_looks_less_often_until_it_has() -> None:
    accepted = ports.Accepted(EmissionNumber(1))
    waits = {}
    for idle in (True, False):
        clock = Clock()
        drive(_pauses(idle=idle), cast("SiteAdapters", Answers(accepted)), clock)
        waits[idle] = clock.waited
    assert len(set(waits[False])) == 1, "who is held up looks as often as ever"
    short = waits[False][0]
    assert waits[True] == [short] * 10 + [2.5 * short] * 10 + [short]


def _refused(times: int) -> ports.Story[None]:
    for _ in range(times):
        yield ports.Pause("the receiver takes nothing", retries=True)
    yield SEND
    yield ports.Pause("the receiver takes nothing", retries=True)
    yield ports.Pause("the gate is closed")


def test_who_is_refused_tries_again_more_and_more_slowly_until_it_goes_well() -> None:
    clock, accepted = Clock(), ports.Accepted(EmissionNumber(1))
    drive(_refused(12), cast("SiteAdapters", Answers(accepted)), clock, backoff=Backoff(lambda: 0.0))
    *retries, again, gate = clock.waited
    assert retries == [min(5.0, 0.02 * 2**number) for number in range(12)]
    assert (again, gate) == (0.02, 0.02)


def test_a_story_that_starts_again_in_vain_is_not_faster() -> None:
    clock, backoff = Clock(), Backoff(lambda: 0.0)
    for _ in range(2):
        drive(_refused(2), cast("SiteAdapters", Answers(ports.Unreachable())), clock, backoff=backoff)
    assert max(clock.waited) == 0.02 * 2**5


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_pause_is_never_long_and_never_nothing(attempt: int, chance: float) -> None:
    assert 0.01 <= pause_before(attempt, chance) <= 5.0
    assert pause_before(attempt, chance) <= pause_before(attempt + 1, chance)
