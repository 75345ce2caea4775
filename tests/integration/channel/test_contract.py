"""What every kind of receiver keeps, as its class promises, on real servers: one body for all of them."""

from __future__ import annotations

import hashlib
from contextlib import closing

import pytest

from support.outside import Outside
from zerotail.core.emission import Lane
from zerotail.core.gate import Asker, Release
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation, Lsn, Timeline
from zerotail.core.receiver import Welcome
from zerotail.deadline import Deadline
from zerotail.ports import Accepted, ClaimAtReceiver, OutOfOrder, SendEmissions, Superseded

pytestmark = pytest.mark.servers

ALL = ["http-R0", "http-R1", "http-R2", "http-R3", "kafka-R0", "kafka-R1", "postgres-R0", "postgres-R1"]
DROP_REPEATS = [name for name in ALL if not name.endswith("R3")]
REMEMBER = ["http-R0", "http-R2", "kafka-R0", "postgres-R0"]
FENCE = ["http-R2", "kafka-R0", "postgres-R0"]
RELEASE = Release(Asker(1, Timeline(1), Epoch(256)), Lsn(1), None)
PATIENCE_SECONDS = 10.0


def claim(lane: Lane, incarnation: int = 1, epoch: int = 256) -> ClaimAtReceiver:
    return ClaimAtReceiver(lane, Epoch(epoch), Incarnation(incarnation))


def value(number: int) -> bytes:
    return b"message %d" % number


def batch(lane: Lane, first: int, last: int, incarnation: int = 1, epoch: int = 256) -> SendEmissions:
    values = [value(number) for number in range(first, last + 1)]
    return SendEmissions(
        lane, Epoch(epoch), Incarnation(incarnation), EmissionNumber(first), values, EmissionNumber(0), RELEASE
    )


def is_value(number: int, seen: bytes) -> bool:
    return seen in (value(number), hashlib.sha256(value(number)).digest())


@pytest.mark.parametrize("outside", ALL, indirect=True)
def test_batches_arrive_whole_and_in_order(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        assert sender.send(batch(lane, 1, 3)) == Accepted(EmissionNumber(3))
        assert sender.send(batch(lane, 4, 5)) == Accepted(EmissionNumber(5))
    arrived = outside.arrived(lane)
    assert [number for number, _ in arrived] == [1, 2, 3, 4, 5]
    assert all(is_value(*one) for one in arrived)


@pytest.mark.parametrize("outside", DROP_REPEATS, indirect=True)
def test_a_repeat_has_no_second_effect(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 3))
        assert sender.send(batch(lane, 2, 5)) == Accepted(EmissionNumber(5))
        assert sender.send(batch(lane, 4, 5)) == Accepted(EmissionNumber(5))
    assert outside.numbers(lane) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("outside", REMEMBER, indirect=True)
def test_a_gap_is_refused_with_the_last_number(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 2))
        assert sender.send(batch(lane, 4, 5)) == OutOfOrder(EmissionNumber(2))
        assert sender.send(batch(lane, 3, 4)) == Accepted(EmissionNumber(4))
    assert outside.numbers(lane) == [1, 2, 3, 4]


@pytest.mark.parametrize("outside", REMEMBER, indirect=True)
def test_a_sender_that_starts_again_hears_exactly_the_last_number(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as first:
        assert first.claim(claim(lane)) == Welcome(EmissionNumber(0), None)
        first.send(batch(lane, 1, 70))
    with closing(outside.open(lane, PATIENCE_SECONDS)) as second:
        welcome = second.claim(claim(lane, incarnation=2))
        assert isinstance(welcome, Welcome)
        assert welcome.last == 70
        assert welcome.last_epoch == 256
        assert second.send(batch(lane, 71, 72, incarnation=2)) == Accepted(EmissionNumber(72))
    assert outside.numbers(lane) == list(range(1, 73))


@pytest.mark.parametrize("outside", FENCE, indirect=True)
def test_an_older_sender_can_neither_claim_nor_send(outside: Outside) -> None:
    lane = outside.lane()
    with (
        closing(outside.open(lane, PATIENCE_SECONDS)) as old,
        closing(outside.open(lane, PATIENCE_SECONDS)) as new,
        closing(outside.open(lane, PATIENCE_SECONDS)) as late,
    ):
        old.claim(claim(lane, incarnation=9))
        old.send(batch(lane, 1, 2, incarnation=9))
        new.claim(claim(lane, epoch=512))
        assert not isinstance(old.send(batch(lane, 3, 3, incarnation=9)), Accepted)
        assert new.send(batch(lane, 3, 4, epoch=512)) == Accepted(EmissionNumber(4))
        assert not isinstance(old.send(batch(lane, 5, 5, incarnation=9)), Accepted)
        assert late.claim(claim(lane, incarnation=10)) == Superseded(Epoch(512))
        assert new.send(batch(lane, 5, 5, epoch=512)) == Accepted(EmissionNumber(5))
    assert outside.numbers(lane) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("outside", DROP_REPEATS, indirect=True)
def test_a_receiver_that_froze_in_the_middle_is_asked_and_gets_each_message_once(outside: Outside) -> None:
    lane = outside.lane()
    # Long enough for a busy machine to answer, short enough to wait for one that does not.
    with closing(outside.open(lane, 2.5)) as sender:
        sender.claim(claim(lane))
        assert sender.send(batch(lane, 1, 3)) == Accepted(EmissionNumber(3))
        with outside.frozen():
            assert not isinstance(sender.send(batch(lane, 4, 6)), Accepted)
    with closing(outside.open(lane, PATIENCE_SECONDS)) as again:
        deadline = Deadline.after(60)
        while not isinstance(welcome := again.claim(claim(lane, incarnation=2)), Welcome):
            assert not deadline.passed, "it does not come back"
        first = 4 if welcome.last is None else welcome.last + 1
        assert first in (4, 7)
        assert again.send(batch(lane, first, 8, incarnation=2)) == Accepted(EmissionNumber(8))
    assert outside.numbers(lane) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("outside", FENCE, indirect=True)
def test_lanes_of_one_channel_do_not_know_each_other(outside: Outside) -> None:
    one, other = outside.lane(), outside.lane()
    with (
        closing(outside.open(one, PATIENCE_SECONDS)) as first,
        closing(outside.open(other, PATIENCE_SECONDS)) as second,
    ):
        first.claim(claim(one, incarnation=5))
        second.claim(claim(other, incarnation=1))
        assert second.send(batch(other, 1, 2)) == Accepted(EmissionNumber(2))
        assert first.send(batch(one, 1, 1, incarnation=5)) == Accepted(EmissionNumber(1))
