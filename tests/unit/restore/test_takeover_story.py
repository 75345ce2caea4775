"""Step 6 of a takeover with a strategy that proves: told by hand, answer by answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unit.protocol.test_stories import DONE, EAST, LINEAGE, PIPELINE, ROW, STAGE, WEST
from zerotail import ports
from zerotail.core.epoch import Durability, Lineage, Phase
from zerotail.core.head import Hint
from zerotail.core.identity import Lsn, Offset, ProducerNumber, Serial, Timeline, epoch_of
from zerotail.core.takeover import Strategy
from zerotail.errors import Unfinished
from zerotail.failover.takeover import Pipeline, take_over

pytestmark = pytest.mark.fast

OPENED = LINEAGE.opened(
    replace(
        ROW,
        epoch=epoch_of(2, 1),
        site=WEST,
        timeline=Timeline(2),
        durability=Durability.EXPOSED,
        phase=Phase.OPENED,
        cause="takeover",
    )
)
END = ports.LogEnd(Hint("log", Offset(40)), ProducerNumber(1), Serial(40))
BEHIND = ports.LogEnd(Hint("log", Offset(47)), ProducerNumber(1), Serial(47))
PROVING = [strategy for strategy in Strategy if strategy.proves]


def seen(lineage: Lineage) -> ports.SiteObserved:
    return ports.SiteObserved(ports.Standing(lineage, Timeline(2), 7), Lsn(9))


def pipeline(strategy: Strategy, *, rebuild: bool = False) -> Pipeline:
    return replace(PIPELINE, stored=frozenset({STAGE.name}), lanes={}, strategy=strategy, rebuild=rebuild)


def tell(story: ports.Story[Any], answers: list[Any]) -> tuple[Any, list[ports.Effect]]:
    effects: list[ports.Effect] = []
    answer: Any = None
    while True:
        try:
            effects.append(story.send(answer))
        except StopIteration as stop:
            return stop.value, effects
        answer = answers.pop(0)


@pytest.mark.parametrize("strategy", PROVING)
def test_the_topic_is_restored_before_stages_are_told_where_to_begin(strategy: Strategy) -> None:
    story = take_over(pipeline(strategy, rebuild=True), WEST, 1, EAST)
    answers = [seen(OPENED), DONE, seen(OPENED), END, ports.TopicRestored(7, 900), BEHIND, DONE, DONE, DONE, DONE, DONE]
    report, effects = tell(story, answers)
    assert report.refilled == 7
    (restored,) = [effect for effect in effects if isinstance(effect, ports.RestoreTopic)]
    assert (restored.site, restored.stage, restored.strategy, restored.rebuild) == (WEST, STAGE.name, strategy, True)
    (start,) = [effect for effect in effects if isinstance(effect, ports.StoreStart)]
    assert start.hint == BEHIND.hint
    assert effects.index(restored) < effects.index(start)


@pytest.mark.parametrize("answer", [ports.Refused("another order"), ports.Unreachable(), ports.Indefinite()])
def test_a_restore_that_does_not_succeed_ends_the_takeover_before_anything_goes_live(answer: object) -> None:
    story = take_over(pipeline(Strategy.ORDERED_REFILL), WEST, 1, EAST)
    effects: list[ports.Effect] = []
    given: list[Any] = [None, seen(OPENED), DONE, seen(OPENED), END, answer]

    def drive() -> None:
        effects.extend(map(story.send, given))

    with pytest.raises(Unfinished, match="could not be completed") as stopped:
        drive()
    assert stopped.value.code == "ZT407"
    assert not any(isinstance(effect, (ports.StoreStart, ports.ChangeEpoch)) for effect in effects)


def test_strategies_that_read_nothing_ask_for_no_restore() -> None:
    story = take_over(pipeline(Strategy.SKIP), WEST, 1, EAST)
    _, effects = tell(story, [seen(OPENED), DONE, seen(OPENED), END, DONE, DONE, DONE, DONE, DONE])
    assert not any(isinstance(effect, ports.RestoreTopic) for effect in effects)
