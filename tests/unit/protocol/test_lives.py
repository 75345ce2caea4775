"""A primary that was started anew: who verifies it, by what answer, and what it may do before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.core.epoch import Durability
from zerotail.core.gate import Gate, GateAnswer, decide
from zerotail.core.identity import Epoch, Lsn, Timeline
from zerotail.core.life import Check
from zerotail.errors import Refused
from zerotail.failover.rejoin import rejoin
from zerotail.flow.life import verify_life
from zerotail.ports import (
    AskGate,
    BeginLife,
    Done,
    Effect,
    ObserveSite,
    PositionRead,
    ReadPosition,
    Standing,
    Unreachable,
)

pytestmark = pytest.mark.fast

ANEW = Standing(standing().lineage, Timeline(1), 1)
"""Of a life that nobody has verified."""
ALONE = Standing(standing(durability=Durability.EXPOSED).lineage, Timeline(1), 1)
WITHOUT = PositionRead(ANEW, Lsn(1000), 7)
NAMED = PositionRead(ANEW, Lsn(1000), 7, "mine")
OLD = GateAnswer(True, 1, Timeline(1), Epoch(256), Lsn(1000), life="before")
MINE = replace(OLD, life="mine")


def verified(seen: PositionRead, answer: Any, here: Any = None) -> tuple[Check, list[Effect]]:
    """What came of it, and what was written."""
    story, effects = verify_life(), []
    answers = iter([seen, answer, seen if here is None else here, Done()])
    effect = next(story)
    while True:
        effects.append(effect)
        try:
            effect = story.send(next(answers))
        except StopIteration as ended:
            return ended.value, [one for one in effects if not isinstance(one, AskGate | ReadPosition)]


def test_a_life_gets_a_nonce_when_the_other_site_receives_its_log_and_holds_no_more() -> None:
    assert verified(WITHOUT, OLD) == (Check.UNKNOWN, [BeginLife(Epoch(256), 7, verified=False)])


def test_it_is_verified_when_the_other_site_has_applied_the_nonce() -> None:
    assert verified(NAMED, MINE) == (Check.SOUND, [BeginLife(Epoch(256), 7, verified=True)])


@pytest.mark.parametrize("seen", [WITHOUT, NAMED])
@pytest.mark.parametrize(
    "answer",
    [
        Unreachable(),
        replace(OLD, in_recovery=False),
        replace(OLD, system=2),
        replace(OLD, timeline=Timeline(2)),
        replace(OLD, timeline=Timeline(0)),
        replace(OLD, epoch=Epoch(513)),
    ],
)
def test_it_is_not_by_an_answer_that_says_nothing_of_it(seen: PositionRead, answer: Any) -> None:
    assert verified(seen, answer) == (Check.UNKNOWN, [])


@pytest.mark.parametrize("seen", [WITHOUT, NAMED, PositionRead(ALONE, Lsn(1000), 7)])
@pytest.mark.parametrize("ahead", [{"flushed": Lsn(1001)}, {"applied": Lsn(1001), "timeline": Timeline(0)}])
def test_nothing_begins_where_the_other_site_holds_more(seen: PositionRead, ahead: dict[str, Any]) -> None:
    assert verified(seen, replace(MINE, **ahead)) == (Check.AHEAD, [])


def test_what_was_written_since_the_question_counts_as_here() -> None:
    later = PositionRead(ANEW, Lsn(1001), 7, "mine")
    assert verified(NAMED, replace(MINE, flushed=Lsn(1001)), later)[0] is Check.SOUND


def test_an_answer_about_an_earlier_start_says_nothing_of_this_one() -> None:
    assert verified(NAMED, MINE, PositionRead(ANEW, Lsn(1000), 8)) == (Check.UNKNOWN, [])


def test_who_works_alone_asks_nobody_for_leave() -> None:
    found = verified(PositionRead(ALONE, Lsn(1000), 7), Unreachable())
    assert found == (Check.SOUND, [BeginLife(Epoch(256), 7, verified=True)])


def test_what_runs_is_not_verified_again() -> None:
    assert verified(PositionRead(standing(), Lsn(1000), 7), OLD) == (Check.SOUND, [])


def test_the_gate_is_shut_for_who_has_not_applied_the_nonce() -> None:
    asker = replace(standing().asker, life="mine")
    assert (decide(MINE, asker, Lsn(1)), decide(OLD, asker, Lsn(1))) == (Gate.OPEN, Gate.OTHER_LIFE)


@pytest.mark.parametrize("timeline", [None, Timeline(2)])
def test_the_only_copy_is_not_replaced(timeline: Timeline | None) -> None:
    story = rejoin(WEST, EAST)
    assert isinstance(next(story), ObserveSite)
    story.send(observed(ANEW))
    with pytest.raises(Refused, match="started anew, and nobody has verified that west holds no more") as refused:
        story.send(observed(standing(timeline=timeline)))
    assert refused.value.code == "ZT478"
