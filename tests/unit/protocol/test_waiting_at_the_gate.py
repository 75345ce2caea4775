"""A step that waits for the other site to catch up: it goes on when that has, and says why not otherwise."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.gate import Asker, GateAnswer
from zerotail.core.identity import Epoch, Lsn, SiteName, Timeline
from zerotail.errors import Broken, Unfinished
from zerotail.flow.gate import PATIENCE, pass_gate, wait_for_gate
from zerotail.ports import AskGate, Done, EndLife, EndRead, Pause, ReadEnd, Standing, Unreachable

pytestmark = pytest.mark.fast

ASKER = Asker(7, Timeline(3), Epoch(513))
THERE = GateAnswer(in_recovery=True, system=7, timeline=Timeline(3), epoch=Epoch(513), flushed=Lsn(900))


def asked(*answers: Any) -> int:
    """Wait for position 900 with these answers, the last one again and again; how many questions it took."""
    story, answer, questions = wait_for_gate(ASKER, Lsn(900)), None, 0
    while True:
        try:
            effect = story.send(answer)
        except StopIteration:
            return questions
        answer = None
        if not isinstance(effect, Pause):
            assert isinstance(effect, AskGate)
            answer = answers[min(questions, len(answers) - 1)]
            questions += 1
            assert questions <= len(answers) + PATIENCE


def test_it_goes_on_as_soon_as_the_other_site_has_it() -> None:
    assert asked(Unreachable(), replace(THERE, flushed=Lsn(899)), THERE) == 3


def test_as_long_as_the_other_site_comes_nearer_nobody_gives_up() -> None:
    nearer = [replace(THERE, flushed=Lsn(position)) for position in range(900 - 2 * PATIENCE, 901)]
    assert asked(*nearer) == 2 * PATIENCE + 1


def test_a_standby_that_still_applies_its_own_files_comes_nearer() -> None:
    silent = replace(THERE, timeline=Timeline(0), flushed=Lsn(0))
    applying = [replace(silent, applied=Lsn(position)) for position in range(1, 2 * PATIENCE)]
    assert asked(*applying, THERE) == 2 * PATIENCE


def test_a_standby_that_has_not_applied_the_epoch_yet_comes_nearer() -> None:
    earlier = replace(THERE, epoch=Epoch(256))
    applying = [replace(earlier, applied=Lsn(900 + position)) for position in range(1, 2 * PATIENCE)]
    assert asked(*applying, THERE) == 2 * PATIENCE


def test_what_is_applied_opens_nothing() -> None:
    with pytest.raises(Unfinished, match="has not caught up in time"):
        asked(replace(THERE, flushed=Lsn(899), applied=Lsn(900)))


def test_a_log_that_grows_on_another_timeline_is_not_nearer() -> None:
    elsewhere = [replace(THERE, timeline=Timeline(2), flushed=Lsn(position)) for position in range(1, 2 * PATIENCE)]
    with pytest.raises(Unfinished, match="has not caught up in time"):
        asked(*elsewhere, THERE)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Unreachable(), "its database does not answer"),
        (replace(THERE, flushed=Lsn(899)), "has not flushed it yet.*log up to 900; it has .* 899"),
        (replace(THERE, timeline=Timeline(0)), "on another timeline.*timeline 3.*timeline 0 .0: it receives no log"),
    ],
)
def test_who_gives_up_says_what_the_last_answer_was(answer: Any, reason: str) -> None:
    with pytest.raises(Unfinished, match="has not caught up in time") as given_up:
        asked(answer)
    assert given_up.value.code == "ZT411"
    assert re.search(reason, given_up.value.why)


STANDING = Standing(
    Lineage((EpochRow(Epoch(513), SiteName("west"), Timeline(3), Durability.GATED, Phase.LIVE, Cut()),)), Timeline(3), 7
)


def passed(answer: GateAnswer, *here: Any) -> bool:
    """Whether what lies below position 900 leaves, with this answer; `here`: what the own database says then."""
    story, answers = pass_gate(STANDING, Lsn(900)), iter([answer, *here])
    effect = next(story)
    while True:
        assert isinstance(effect, AskGate | ReadEnd | EndLife)
        try:
            effect = story.send(next(answers))
        except StopIteration as ended:
            assert next(answers, None) is None, "the own database was not asked"
            return ended.value is not None


def test_who_holds_no_more_than_is_wanted_is_believed_at_once() -> None:
    assert passed(THERE)


def test_who_holds_more_than_is_wanted_holds_what_others_have_written_since() -> None:
    assert passed(replace(THERE, flushed=Lsn(950)), EndRead(STANDING.asker, Lsn(950)))


def test_who_holds_more_than_was_ever_written_here_opens_nothing() -> None:
    with pytest.raises(Broken, match=r"holds the log up to 951, and here it ends at 950\.") as ahead:
        passed(replace(THERE, flushed=Lsn(951)), EndRead(STANDING.asker, Lsn(950)), Done())
    assert (ahead.value.code, ahead.value.tries[-1].split(" --")[0]) == ("ZT416", "zerotail takeover plan")


def test_who_finds_that_out_ends_the_life_for_everybody_else() -> None:
    """For a moment only positions show it: behind that the log here has grown beyond the other site's."""
    story = pass_gate(STANDING, Lsn(900))
    next(story)
    story.send(replace(THERE, flushed=Lsn(951)))
    assert story.send(EndRead(STANDING.asker, Lsn(950))) == EndLife(STANDING.life)
    with pytest.raises(Broken):
        story.send(Unreachable())


def test_nothing_leaves_while_nobody_knows_how_far_the_own_log_reaches() -> None:
    elsewhere = Standing(STANDING.lineage, Timeline(4), 7)
    assert not passed(replace(THERE, flushed=Lsn(950)), Unreachable())
    assert not passed(replace(THERE, flushed=Lsn(951)), EndRead(elsewhere.asker, Lsn(950)))
