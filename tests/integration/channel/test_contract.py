"""What every kind of receiver keeps, as its class promises: one body for all of them, real ones and simulated ones.

What a receiver of the simulation does better than a real one, no simulated run would ever show. So each real kind and
class has a simulated twin, and a test that asks one asks the other. Kinds differ where their class leaves them free:

    who is refused                       http R0   http R2   postgres R0   kafka R0
    an older claim, nothing written yet  nobody    it        it            nobody
    an older claim, something written    nobody    it        it            it
    a batch of an older sender           nobody    it        it            it
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from typing import TypeVar

import pytest
from msgspec import structs

from support.outside import Outside
from zerotail.channel.receiver import Receiver
from zerotail.core.emission import Lane
from zerotail.core.gate import Asker, Release
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation, Lsn, Timeline
from zerotail.core.receiver import Welcome
from zerotail.deadline import Deadline
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Indefinite,
    OtherInstallation,
    OutOfOrder,
    SendEmissions,
    Superseded,
)

ALL = ["http-R0", "http-R1", "http-R2", "http-R3", "kafka-R0", "kafka-R1", "postgres-R0", "postgres-R1"]
DROP_REPEATS = [name for name in ALL if not name.endswith("R3")]
KEEP_INSTALLATIONS_APART = ["http-R1", "postgres-R1"]
BELONG_TO_ONE_INSTALLATION = ["http-R0", "http-R2", "kafka-R0", "postgres-R0"]
DROP_REPEATS_ONLY = [name for name in ALL if name.endswith("R1")]
REMEMBER = ["http-R0", "http-R2", "kafka-R0", "postgres-R0"]
FENCE = ["http-R2", "kafka-R0", "postgres-R0"]
FENCE_CLAIMS = ["http-R2", "postgres-R0"]
WANT_A_CLAIM = ["kafka-R0", "postgres-R0"]
E = TypeVar("E", ClaimAtReceiver, SendEmissions)
RELEASE = Release(Asker(1, Timeline(1), Epoch(256)), Lsn(1), None)
PATIENCE_SECONDS = 10.0


def each_of(names: list[str]) -> pytest.MarkDecorator:
    """The test's `outside`: each of these with real servers, and its simulated twin."""
    twins = [
        param
        for name in names
        for param in (
            pytest.param(name, marks=pytest.mark.servers),
            pytest.param(f"simulated-{name}", marks=pytest.mark.fast),
        )
    ]
    return pytest.mark.parametrize("outside", twins, indirect=True)


def claim(lane: Lane, incarnation: int = 1, epoch: int = 256) -> ClaimAtReceiver:
    return ClaimAtReceiver(lane, Epoch(epoch), Incarnation(incarnation))


def of(installation: str, effect: E) -> E:
    return structs.replace(effect, installation=installation)


def value(number: int) -> bytes:
    return b"message %d" % number


def batch(lane: Lane, first: int, last: int, incarnation: int = 1, epoch: int = 256) -> SendEmissions:
    values = [value(number) for number in range(first, last + 1)]
    return SendEmissions(
        lane, Epoch(epoch), Incarnation(incarnation), EmissionNumber(first), values, EmissionNumber(0), RELEASE
    )


def claimed(sender: Receiver, effect: ClaimAtReceiver) -> Welcome:
    """Claim until the receiver answers."""
    deadline = Deadline.after(60)
    while not isinstance(welcome := sender.claim(effect), Welcome):
        assert not deadline.passed, f"it does not come back: {welcome}"
    return welcome


def is_value(number: int, seen: bytes) -> bool:
    return seen in (value(number), hashlib.sha256(value(number)).digest())


@each_of(ALL)
def test_batches_arrive_whole_and_in_order(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        assert sender.send(batch(lane, 1, 3)) == Accepted(EmissionNumber(3))
        assert sender.send(batch(lane, 4, 5)) == Accepted(EmissionNumber(5))
    arrived = outside.arrived(lane)
    assert [number for number, _ in arrived] == [1, 2, 3, 4, 5]
    assert all(is_value(*one) for one in arrived)


@each_of(DROP_REPEATS)
def test_a_repeat_has_no_second_effect(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 3))
        assert sender.send(batch(lane, 2, 5)) == Accepted(EmissionNumber(5))
        assert sender.send(batch(lane, 4, 5)) == Accepted(EmissionNumber(5))
        again = sender.send(batch(lane, 1, 2))
        assert isinstance(again, Accepted)
        assert 2 <= again.last <= 5
    assert outside.numbers(lane) == [1, 2, 3, 4, 5]


@each_of(DROP_REPEATS)
def test_a_repeat_with_other_bytes_is_dropped_like_any_other(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 2))
        assert sender.send(structs.replace(batch(lane, 2, 3), values=[b"other", value(3)])) == Accepted(
            EmissionNumber(3)
        )
    arrived = outside.arrived(lane)
    assert [number for number, _ in arrived] == [1, 2, 3]
    assert all(is_value(*one) for one in arrived)


@each_of(DROP_REPEATS_ONLY)
def test_a_receiver_that_only_drops_repeats_takes_every_new_number(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        for first, last in ((1, 2), (4, 5), (2, 6)):
            assert sender.send(batch(lane, first, last)) == Accepted(EmissionNumber(last))
    assert outside.numbers(lane) == [1, 2, 4, 5, 3, 6]


@each_of(["http-R3"])
def test_a_receiver_that_can_do_nothing_takes_everything_and_knows_nothing(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, 2.5)) as sender:
        assert sender.claim(claim(lane)) == Welcome(None, None)
        for first, last in ((1, 2), (2, 3), (6, 6)):
            assert sender.send(batch(lane, first, last)) == Accepted(EmissionNumber(last))
        with outside.frozen():
            assert isinstance(sender.send(batch(lane, 7, 8)), Indefinite)
    with closing(outside.open(lane, PATIENCE_SECONDS)) as again:
        assert again.claim(claim(lane, incarnation=2)) == Welcome(None, None)
        assert again.send(batch(lane, 7, 8, incarnation=2)) == Accepted(EmissionNumber(8))
    arrived = outside.numbers(lane)
    assert arrived[:5] == [1, 2, 2, 3, 6]
    assert arrived[5:] in ([7, 8], [7, 8, 7, 8]), "which of these, nobody can ask: it is a doubt"


@each_of(REMEMBER)
def test_a_gap_is_refused_with_the_last_number(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 2))
        assert sender.send(batch(lane, 4, 5)) == OutOfOrder(EmissionNumber(2))
        assert sender.send(batch(lane, 3, 4)) == Accepted(EmissionNumber(4))
    assert outside.numbers(lane) == [1, 2, 3, 4]


@each_of(REMEMBER)
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


@each_of(REMEMBER)
def test_a_repeated_claim_is_answered_like_the_first(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 2))
        for _ in range(2):
            assert sender.claim(claim(lane, epoch=512)) == Welcome(EmissionNumber(2), Epoch(256))
        assert sender.send(batch(lane, 3, 3, epoch=512)) == Accepted(EmissionNumber(3))
        assert sender.claim(claim(lane, epoch=512)) == Welcome(EmissionNumber(3), Epoch(512))


@each_of(FENCE)
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
        assert not isinstance(old.send(batch(lane, 3, 3, incarnation=9)), Accepted), "claimed, nothing written yet"
        assert outside.numbers(lane) == [1, 2]
        assert new.send(batch(lane, 3, 4, epoch=512)) == Accepted(EmissionNumber(4))
        assert not isinstance(old.send(batch(lane, 5, 5, incarnation=9)), Accepted)
        assert late.claim(claim(lane, incarnation=10)) == Superseded(Epoch(512))
        assert new.send(batch(lane, 5, 5, epoch=512)) == Accepted(EmissionNumber(5))
    assert outside.numbers(lane) == [1, 2, 3, 4, 5]


@each_of(FENCE_CLAIMS)
def test_an_older_claim_is_refused_before_the_new_sender_has_written(outside: Outside) -> None:
    lane = outside.lane()
    with (
        closing(outside.open(lane, PATIENCE_SECONDS)) as new,
        closing(outside.open(lane, PATIENCE_SECONDS)) as late,
    ):
        new.claim(claim(lane, epoch=512))
        assert late.claim(claim(lane, incarnation=10)) == Superseded(Epoch(512))
        assert late.send(batch(lane, 1, 1, incarnation=10)) == Superseded(Epoch(512))
        assert new.send(batch(lane, 1, 1, epoch=512)) == Accepted(EmissionNumber(1))
    assert outside.numbers(lane) == [1]


@each_of(["kafka-R0"])
def test_a_topic_belongs_to_whoever_claimed_last_until_the_newer_sender_has_written(outside: Outside) -> None:
    """The topic knows a sender by what it has written; until then there is nothing to compare with."""
    lane = outside.lane()
    with (
        closing(outside.open(lane, PATIENCE_SECONDS)) as old,
        closing(outside.open(lane, PATIENCE_SECONDS)) as new,
    ):
        assert new.claim(claim(lane, epoch=512)) == Welcome(EmissionNumber(0), None)
        assert old.claim(claim(lane, incarnation=9)) == Welcome(EmissionNumber(0), None)
        assert isinstance(new.send(batch(lane, 1, 1, epoch=512)), Indefinite)
        assert new.send(batch(lane, 1, 1, epoch=512)) == OutOfOrder(EmissionNumber(0)), "its producer is gone"
        assert old.send(batch(lane, 1, 2, incarnation=9)) == Accepted(EmissionNumber(2))
        assert new.claim(claim(lane, epoch=512)) == Welcome(EmissionNumber(2), Epoch(256))
        assert new.send(batch(lane, 2, 3, epoch=512)) == Accepted(EmissionNumber(3))
        assert old.claim(claim(lane, incarnation=9)) == Superseded(Epoch(512))
    assert outside.numbers(lane) == [1, 2, 3]


@each_of(["http-R0"])
def test_a_receiver_that_looks_at_numbers_only_hears_older_senders(outside: Outside) -> None:
    lane = outside.lane()
    with (
        closing(outside.open(lane, PATIENCE_SECONDS)) as old,
        closing(outside.open(lane, PATIENCE_SECONDS)) as new,
    ):
        new.claim(claim(lane, epoch=512))
        assert old.claim(claim(lane)) == Welcome(EmissionNumber(0), None)
        assert old.send(batch(lane, 1, 2)) == Accepted(EmissionNumber(2)), "claimed, nothing written yet"
        assert new.send(batch(lane, 1, 3, epoch=512)) == Accepted(EmissionNumber(3))
        assert old.send(batch(lane, 3, 4)) == Accepted(EmissionNumber(4))
        assert new.claim(claim(lane, epoch=512)) == Welcome(EmissionNumber(4), Epoch(256))
    assert outside.numbers(lane) == [1, 2, 3, 4]


@each_of(WANT_A_CLAIM)
def test_a_lane_that_nobody_has_claimed_takes_nothing(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        assert sender.send(batch(lane, 1, 1)) == OutOfOrder(EmissionNumber(0))
    assert outside.numbers(lane) == []


@each_of(DROP_REPEATS)
def test_a_receiver_that_froze_in_the_middle_is_asked_and_gets_each_message_once(outside: Outside) -> None:
    lane = outside.lane()
    # Long enough for a busy machine to answer, short enough to wait for one that does not.
    with closing(outside.open(lane, 2.5)) as sender:
        sender.claim(claim(lane))
        assert sender.send(batch(lane, 1, 3)) == Accepted(EmissionNumber(3))
        with outside.frozen():
            assert not isinstance(sender.send(batch(lane, 4, 6)), Accepted)
    with closing(outside.open(lane, PATIENCE_SECONDS)) as again:
        welcome = claimed(again, claim(lane, incarnation=2))
        first = 4 if welcome.last is None else welcome.last + 1
        assert first in (4, 7)
        assert again.send(batch(lane, first, 8, incarnation=2)) == Accepted(EmissionNumber(8))
    assert outside.numbers(lane) == [1, 2, 3, 4, 5, 6, 7, 8]


@each_of(ALL)
def test_a_receiver_that_was_killed_knows_what_it_knew(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, 2.5)) as before:
        before.claim(claim(lane, epoch=512))
        assert before.send(batch(lane, 1, 3, epoch=512)) == Accepted(EmissionNumber(3))
        with outside.down():
            assert not isinstance(before.send(batch(lane, 4, 5, epoch=512)), Accepted)
    with (
        closing(outside.open(lane, PATIENCE_SECONDS)) as behind,
        closing(outside.open(lane, PATIENCE_SECONDS)) as older,
    ):
        welcome = claimed(behind, claim(lane, epoch=512, incarnation=2))
        if outside.receiver.remembers:
            assert welcome == Welcome(EmissionNumber(3), Epoch(512))
        if outside.name.removeprefix("simulated-") in FENCE:
            assert older.claim(claim(lane, epoch=256)) == Superseded(Epoch(512))
        assert behind.send(batch(lane, 4, 6, epoch=512, incarnation=2)) == Accepted(EmissionNumber(6))
    assert outside.numbers(lane) == [1, 2, 3, 4, 5, 6]


@each_of(FENCE)
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


@each_of(KEEP_INSTALLATIONS_APART)
def test_equal_numbers_of_two_installations_are_different_messages(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        for installation in ("", "a" * 32, "b" * 32):
            assert sender.send(of(installation, batch(lane, 1, 2))) == Accepted(EmissionNumber(2))
            assert sender.send(of(installation, batch(lane, 1, 3))) == Accepted(EmissionNumber(3))
    assert outside.numbers(lane) == [1, 2, 3] * 3


@pytest.mark.parametrize("first", ["", "a" * 32])
@each_of(BELONG_TO_ONE_INSTALLATION)
def test_a_lane_that_belongs_to_another_installation_takes_nothing(outside: Outside, first: str) -> None:
    lane, second = outside.lane(), "b" * 32
    with (
        closing(outside.open(lane, PATIENCE_SECONDS)) as sender,
        closing(outside.open(lane, PATIENCE_SECONDS)) as other,
    ):
        sender.claim(of(first, claim(lane)))
        assert sender.send(of(first, batch(lane, 1, 2))) == Accepted(EmissionNumber(2))
        assert other.claim(of(second, claim(lane, epoch=1024))) == OtherInstallation(first)
        if outside.name.removeprefix("simulated-") != "kafka-R0":
            assert other.send(of(second, batch(lane, 3, 3, epoch=1024))) == OtherInstallation(first)
        assert sender.send(of(first, batch(lane, 3, 4))) == Accepted(EmissionNumber(4)), "nobody has shut it out"
    assert outside.numbers(lane) == [1, 2, 3, 4]
