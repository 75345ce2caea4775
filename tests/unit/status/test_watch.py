"""Looking again and again: what is printed, and how long a question is waited for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from threading import Event

import pytest

from zerotail.cli.status import _print_changes
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.status.answers import Unanswered
from zerotail.status.observation import Question
from zerotail.status.values import DatabaseStatus, GateStatus, KafkaStatus, SiteStatus, StageStatus, Status, Unknown

pytestmark = pytest.mark.fast

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
EAST = SiteStatus("east", "active", KafkaStatus(1, 1, None), DatabaseStatus("primary", None, False, None, (), True))
STAGE = StageStatus("settle", 0, None, 250, 10.0, 0, 0.0, 0, 0, 0, 0)


def look(applied: int, *troubles: str) -> Status:
    gate = GateStatus(True, "", 0)
    stages = (replace(STAGE, applied=applied),)
    return Status("ready", "west", (), NOON, True, "east", None, gate, (EAST,), stages, (), (), 0, troubles)


def test_a_block_is_printed_for_a_change_and_not_for_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    _print_changes(
        [look(250), look(251), look(99_999), look(99_999, "a is silent for 6 s"), look(1, "a is silent for 7 s")]
    )
    printed = capsys.readouterr().out
    assert printed.count("READY for takeover to west") == 2
    assert printed.count("is silent") == 1


def test_a_question_that_nobody_answers_is_left_behind() -> None:
    released = Event()

    def never(_deadline: Deadline) -> int:
        released.wait(60)
        return 1

    began = Deadline.after(30)
    answer = Question(never, 0.05).answer(None)
    assert not began.passed
    released.set()
    assert isinstance(answer, Unanswered)
    assert (answer.reason, answer.way) == ("no answer within 0.05 s", "silent")


def test_an_answer_an_error_and_a_bug_are_told_apart() -> None:
    def raise_it(error: Exception) -> Question[int]:
        def ask(_deadline: Deadline) -> int:
            raise error

        return Question(ask, 30)

    assert Question(lambda _deadline: 7, 30).answer(None) == 7
    refused = raise_it(Unavailable("connection failed: to port 1 failed: Connection refused")).answer(Unknown(NOON, ""))
    assert refused == Unanswered(NOON, "Connection refused", "nobody listens")
    with pytest.raises(ZeroDivisionError):
        raise_it(ZeroDivisionError()).answer(None)
