"""A receiver without memory, in an epoch that ceases to be exposed between what is read and the stored intent."""

from __future__ import annotations

from typing import Any

import pytest

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Incarnation,
    Lsn,
    PartitionNumber,
    SiteName,
    Timeline,
    epoch_of,
)
from zerotail.core.receiver import LaneRecord, ReceiverClass
from zerotail.flow.emit import Sender, emit

pytestmark = pytest.mark.fast

WEST = SiteName("west")
LANE = Lane(ChannelName("bank"), PartitionNumber(0))
RECORD = LaneRecord(EmissionNumber(2), EmissionNumber(0), EmissionNumber(0))
INTENT = Lsn(70)


def standing(durability: Durability) -> ports.Standing:
    row = EpochRow(epoch_of(2, 1), WEST, Timeline(2), durability, Phase.LIVE, Cut(), "takeover")
    return ports.Standing(Lineage((row,)), Timeline(2), 7)


def lane_read(durability: Durability, *values: bytes) -> ports.LaneRead:
    return ports.LaneRead(standing(durability), Lsn(60), Incarnation(1), RECORD, values)


def what_follows_the_intent(behind: Any) -> ports.Effect:
    """What the sender does once its intent is stored and it has read where the database stands."""
    story = emit(Sender(LANE, ReceiverClass.R3, WEST))
    exposed = Durability.EXPOSED
    answers = [
        ports.LaneClaimed(standing(exposed), Incarnation(1), Lsn(50)),
        lane_read(exposed),
        lane_read(exposed, b"a", b"b"),
        ports.Done(INTENT),
        behind,
    ]
    effect = story.send(None)
    for answer in answers:
        effect = story.send(answer)
    return effect


def test_a_message_leaves_without_the_gate_when_the_epoch_is_exposed_behind_the_intent_too() -> None:
    effect = what_follows_the_intent(lane_read(Durability.EXPOSED))
    assert isinstance(effect, ports.SendEmissions)
    assert effect.release.answer is None
    assert effect.release.wanted == INTENT


def test_the_gate_is_asked_when_the_epoch_has_gone_back_to_gated_meanwhile() -> None:
    effect = what_follows_the_intent(lane_read(Durability.GATED))
    assert isinstance(effect, ports.AskGate)


@pytest.mark.parametrize("behind", [ports.Unreachable(), ports.Refused("no")])
def test_nothing_leaves_when_nobody_knows(behind: Any) -> None:
    effect = what_follows_the_intent(behind)
    assert isinstance(effect, ports.Pause)
