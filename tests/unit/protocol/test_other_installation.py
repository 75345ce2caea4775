"""A receiver that belongs to another installation: who sends says which one it is, and its lane stops with a number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    SiteName,
    Timeline,
    epoch_of,
)
from zerotail.core.installation import Installation
from zerotail.core.receiver import LaneRecord, ReceiverClass
from zerotail.errors import Broken
from zerotail.flow.emit import Sender, emit

pytestmark = pytest.mark.fast

EAST = SiteName("east")
LANE = Lane(ChannelName("bank"), PartitionNumber(0))
OURS = Installation(b"ours, 16 letters", accepts_unmarked=False)
THEIRS = ports.OtherInstallation("f" * 32)
ROW = EpochRow(epoch_of(2, 0), EAST, Timeline(2), Durability.EXPOSED, Phase.LIVE, Cut(), "takeover")
STANDING = ports.Standing(Lineage((ROW,)), Timeline(2), 7, installation=OURS)
RECORD = LaneRecord(EmissionNumber(2), EmissionNumber(0), EmissionNumber(0))


def lane_read(standing: ports.Standing, *values: bytes) -> ports.LaneRead:
    return ports.LaneRead(standing, Lsn(60), Incarnation(1), RECORD, values)


def next_behind(receiver: ReceiverClass, standing: ports.Standing, *answers: Any) -> ports.Effect:
    """What a sender does behind these answers; the first one, to its claim of the lane, is given."""
    story = emit(Sender(LANE, receiver, EAST))
    effect = story.send(None)
    for answer in (ports.LaneClaimed(standing, Incarnation(1), Lsn(50)), *answers):
        effect = story.send(answer)
    return effect


def test_one_wrong_answer_holds_up_its_lane_and_ends_no_sender() -> None:
    """A newer epoch ends the whole process; one that no site can have reached does not."""
    wild = ports.Superseded(Epoch(2**62))
    asked = next_behind(ReceiverClass.R2, STANDING, wild)
    assert isinstance(asked, ports.ReadLane), "whether the database knows of another sender"
    waits = next_behind(ReceiverClass.R2, STANDING, wild, lane_read(STANDING))
    assert isinstance(waits, ports.Pause)
    with pytest.raises(StopIteration):
        next_behind(ReceiverClass.R2, STANDING, ports.Superseded(epoch_of(3, 1)))


def test_a_claim_and_a_batch_say_which_installation_it_is() -> None:
    claim = next_behind(ReceiverClass.R2, STANDING)
    assert isinstance(claim, ports.ClaimAtReceiver)
    batch = next_behind(ReceiverClass.R1, STANDING, lane_read(STANDING), lane_read(STANDING, b"a"))
    assert isinstance(batch, ports.SendEmissions)
    assert claim.installation == batch.installation == OURS.name


def test_one_that_began_before_there_were_identities_says_nothing() -> None:
    standing = structs.replace(STANDING, installation=replace(OURS, accepts_unmarked=True))
    batch = next_behind(ReceiverClass.R1, standing, lane_read(standing), lane_read(standing, b"a"))
    assert isinstance(batch, ports.SendEmissions)
    assert batch.installation == ""


@pytest.mark.parametrize(
    ("receiver", "answers"),
    [
        (ReceiverClass.R2, [THEIRS]),
        (ReceiverClass.R1, [lane_read(STANDING), lane_read(STANDING, b"a"), THEIRS]),
    ],
)
def test_the_lane_stops_where_the_numbers_are_those_of_another(receiver: ReceiverClass, answers: list[Any]) -> None:
    with pytest.raises(Broken, match=f"has messages of installation {'f' * 32} on partition 0") as broken:
        next_behind(receiver, STANDING, *answers)
    assert broken.value.code == "ZT607"
