"""A receiver that does not answer is asked once in a takeover, however many lanes lead to it."""

from __future__ import annotations

from typing import Any

import pytest

from support.standings import WEST, standing
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability
from zerotail.core.identity import ChannelName, EmissionNumber, Incarnation, Lsn, PartitionNumber, epoch_of
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.core.takeover import Step, TakeoverPlan
from zerotail.failover.takeover import Pipeline, TakeoverReport, carry_out
from zerotail.ports import ClaimAtReceiver, ClaimLane, Indefinite, LaneClaimed, Superseded, Unreachable

pytestmark = pytest.mark.fast

LANES = [Lane(ChannelName(name), PartitionNumber(partition)) for name in ("bank", "mail") for partition in range(4)]


def asked(answer_of_bank: object) -> list[Lane]:
    """The lanes that are claimed at receivers when the one of `bank` answers so."""
    return handshake(answer_of_bank)[0]


def handshake(answer_of_bank: object) -> tuple[list[Lane], TakeoverReport]:
    """The lanes that are claimed when the receiver of `bank` answers so, and what the takeover says at its end."""
    now = standing()
    plan = TakeoverPlan(WEST, now.epoch, now.epoch, Durability.EXPOSED, "takeover", (Step.HANDSHAKE,))
    story = carry_out(Pipeline([], {}, dict.fromkeys(LANES, ReceiverClass.R2)), plan, WEST, "")
    found: list[Lane] = []
    answer: Any = None
    try:
        while True:
            effect = story.send(answer)
            answer = None
            if isinstance(effect, ClaimLane):
                answer = LaneClaimed(now, Incarnation(1), Lsn(1))
            elif isinstance(effect, ClaimAtReceiver):
                found.append(effect.lane)
                answer = answer_of_bank if effect.lane.channel == "bank" else Superseded(epoch_of(9, 1))
    except StopIteration as ended:
        return found, ended.value


def test_a_silent_one_is_asked_once() -> None:
    for silence in (Unreachable(), Indefinite()):
        assert asked(silence) == [LANES[0], *LANES[4:]]


def test_one_that_answers_is_asked_for_every_lane() -> None:
    assert asked(Superseded(epoch_of(9, 1))) == LANES


def test_one_that_met_another_history_stops_no_site() -> None:
    """Its emitter meets the same answer at its own claim, and stops that lane alone."""
    lost = epoch_of(9, 0)
    claimed, report = handshake(Welcome(EmissionNumber(5), lost))
    assert claimed == LANES, "every other receiver is claimed as well"
    assert report.other_histories == tuple(LANES[:4])
    assert handshake(Welcome(EmissionNumber(5), standing().epoch))[1].other_histories == ()
