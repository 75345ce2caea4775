"""The verdict of a drill comes from both judges; a listed doubt may come again or late, and nothing else may."""

from __future__ import annotations

import pytest

from zerotail.core.verdict import Doubt, Verdict, Violation
from zerotail.drill.judgement import Counts, conclude, count_arrivals
from zerotail.lab.receiver.protocol import MessageAttempt, ReceiverClass
from zerotail.lab.receiver.protocol import Verdict as Answer

pytestmark = pytest.mark.fast

FINE = Counts(10, 10, 0, 0, 0, 0, ())
CLEAN = Verdict(violations=(), doubts=(), counted={}, notes=())
BROKEN = Verdict(violations=(Violation("S1", "lost", (), 1),), doubts=(), counted={}, notes=())
OPEN = Verdict(violations=(), doubts=(Doubt("N2", "it did not bite"),), counted={}, notes=())


def accepted(number: int, partition: int = 0) -> MessageAttempt:
    return MessageAttempt(
        *(1, "bank", partition, number, 256, 1, "east", False, "00", 1, 0.0, ReceiverClass.R3, Answer.ACCEPTED, None)
    )


@pytest.mark.parametrize(
    ("counts", "checked", "findings", "open_ends", "verdict"),
    [
        (FINE, CLEAN, [], [], "passed"),
        (FINE, BROKEN, [], [], "failed"),
        (FINE, CLEAN, ["not kept: silence"], [], "failed"),
        (Counts(10, 9, 1, 0, 0, 0, ()), CLEAN, [], [], "failed"),
        (Counts(10, 11, 0, 1, 0, 0, ()), CLEAN, [], ["open"], "failed"),
        (FINE, OPEN, [], [], "undecided"),
        (FINE, CLEAN, [], ["open: it did not bite"], "undecided"),
        (None, None, [], [], "undecided"),
        (None, None, ["it stood still"], [], "failed"),
    ],
)
def test_either_judge_can_fail_a_drill_and_none_alone_can_pass_it(
    counts: Counts | None, checked: Verdict | None, findings: list[str], open_ends: list[str], verdict: str
) -> None:
    assert conclude(counts, checked, findings, open_ends) == verdict


def test_what_comes_twice_or_behind_a_later_number_is_counted() -> None:
    arrived, again, late = count_arrivals([accepted(1), accepted(3), accepted(2), accepted(3)], set())
    assert (arrived, again, late) == ({(0, 1), (0, 2), (0, 3)}, 1, 1)


def test_partitions_have_numbers_of_their_own() -> None:
    assert count_arrivals([accepted(2), accepted(1, partition=1)], set())[1:] == (0, 0)


def test_a_listed_doubt_may_come_again_and_late() -> None:
    assert count_arrivals([accepted(2), accepted(3), accepted(2)], {(0, 2)})[1:] == (0, 0)
