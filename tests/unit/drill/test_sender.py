"""A sender of a drill writes down why it sends, before it sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.channel.receiver import ClaimAnswer, SendAnswer
from zerotail.core.emission import Lane
from zerotail.core.gate import Asker, GateAnswer, Release
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    SiteName,
    Timeline,
)
from zerotail.drill.history import Released
from zerotail.drill.recording import read_history
from zerotail.drill.sender import WitnessedReceiver
from zerotail.ports import Accepted, ClaimAtReceiver, SendEmissions, Unreachable

pytestmark = pytest.mark.fast

LANE = Lane(ChannelName("bank"), PartitionNumber(1))
ASKER = Asker(7, Timeline(3), Epoch(256))
ANSWER = GateAnswer(in_recovery=True, system=7, timeline=Timeline(3), epoch=Epoch(256), flushed=Lsn(900))


class Outside:
    """Looks into the history whenever something arrives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: list[int] = []
        self.closed = False

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        return Unreachable()

    def send(self, effect: SendEmissions) -> SendAnswer:
        self.known = [int(one.through) for one in read_history(self.folder).events if isinstance(one, Released)]
        return Accepted(effect.last)

    def close(self) -> None:
        self.closed = True


def sent(first: int, values: list[bytes], release: Release) -> SendEmissions:
    return SendEmissions(LANE, Epoch(256), Incarnation(4), EmissionNumber(first), values, EmissionNumber(0), release)


def test_the_release_is_in_the_history_before_the_receiver_hears_of_the_batch(tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    witnessed = WitnessedReceiver(outside, tmp_path, SiteName("east"), LANE)
    witnessed.send(sent(5, [b"a", b"b"], Release(ASKER, Lsn(800), ANSWER)))
    assert outside.known == [6]
    witnessed.send(sent(7, [b"c"], Release(ASKER, Lsn(950), None)))
    assert outside.known == [6, 7]
    witnessed.close()
    assert outside.closed
    by_gate, exposed = (one for one in read_history(tmp_path).events if isinstance(one, Released))
    assert (by_gate.by, by_gate.lsn_wanted, by_gate.other_lsn_flushed) == ("gate", 800, 900)
    assert (by_gate.site, by_gate.epoch, by_gate.incarnation, by_gate.partition) == ("east", 256, 4, 1)
    assert (exposed.by, exposed.timeline) == ("exposure", 3)


def test_the_receivers_own_answers_come_through(tmp_path: Path) -> None:
    witnessed = WitnessedReceiver(Outside(tmp_path), tmp_path, SiteName("east"), LANE)
    assert witnessed.claim(ClaimAtReceiver(LANE, Epoch(256), Incarnation(4))) == Unreachable()
    assert witnessed.send(sent(1, [b"a"], Release(ASKER, Lsn(1), ANSWER))) == Accepted(EmissionNumber(1))
    witnessed.close()


def test_a_lane_that_is_opened_again_by_the_same_process_goes_on_in_a_file_of_its_own(tmp_path: Path) -> None:
    for first in (1, 2):
        witnessed = WitnessedReceiver(Outside(tmp_path), tmp_path, SiteName("east"), LANE)
        witnessed.send(sent(first, [b"a"], Release(ASKER, Lsn(800), ANSWER)))
        witnessed.close()
    history = read_history(tmp_path)
    assert [int(one.through) for one in history.events if isinstance(one, Released)] == [1, 2]
    assert not history.damaged
