"""The table of classes and verdicts, cell by cell."""

from __future__ import annotations

import itertools

import pytest

from zerotail.lab.receiver.judgement import judge, judge_claim
from zerotail.lab.receiver.protocol import ReceiverClass, Sender, Verdict

pytestmark = pytest.mark.fast

NOW = Sender(257, 2)
OLDER = [Sender(257, 1), Sender(256, 9)]
NOT_OLDER = [NOW, Sender(257, 3), Sender(512, 0)]


def verdict_of(receiver_class: str, number: int, sender: Sender = NOW, *, was_accepted: bool = False) -> Verdict:
    return judge(ReceiverClass(receiver_class), number, sender, last=5, was_accepted=was_accepted, highest=NOW)


@pytest.mark.parametrize("receiver_class", ["R0", "R2"])
def test_only_the_number_after_the_last_is_accepted_by_r0_and_r2(receiver_class: str) -> None:
    verdicts = [verdict_of(receiver_class, number, was_accepted=number <= 5) for number in range(1, 9)]
    assert verdicts == [Verdict.REPEAT_DROPPED] * 5 + [Verdict.ACCEPTED] + [Verdict.GAP_REFUSED] * 2


@pytest.mark.parametrize("number", range(1, 9))
def test_r1_looks_only_at_whether_the_very_number_was_accepted(number: int) -> None:
    assert verdict_of("R1", number, was_accepted=True) is Verdict.REPEAT_DROPPED
    assert verdict_of("R1", number, was_accepted=False) is Verdict.ACCEPTED


def test_r3_accepts_everything() -> None:
    for number, was_accepted, sender in itertools.product(range(1, 9), (True, False), OLDER + NOT_OLDER):
        assert verdict_of("R3", number, sender, was_accepted=was_accepted) is Verdict.ACCEPTED


@pytest.mark.parametrize("number", range(1, 9))
def test_r2_refuses_an_older_sender_whatever_the_number_and_only_r2_does(number: int) -> None:
    for sender in OLDER:
        assert verdict_of("R2", number, sender) is Verdict.OLDER_EPOCH_REFUSED
        assert verdict_of("R0", number, sender) is verdict_of("R0", number)
        assert verdict_of("R1", number, sender) is verdict_of("R1", number)
    for sender in NOT_OLDER:
        assert verdict_of("R2", number, sender) is verdict_of("R2", number)


def test_on_a_channel_that_has_met_nobody_everybody_is_new_enough() -> None:
    verdict = judge(ReceiverClass.R2, 1, Sender(1, 0), last=0, was_accepted=False, highest=None)
    assert verdict is Verdict.ACCEPTED
    assert judge_claim(ReceiverClass.R2, Sender(1, 0), None) is Verdict.ACCEPTED


def test_only_r2_refuses_a_claim_and_only_an_older_one() -> None:
    for receiver_class, sender in itertools.product(ReceiverClass, OLDER + NOT_OLDER):
        refused = receiver_class is ReceiverClass.R2 and sender in OLDER
        assert judge_claim(receiver_class, sender, NOW).refuses is refused
