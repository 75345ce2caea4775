"""Whatever a receiver does, its lane gets an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from integration.channel.test_contract import batch, claim
from zerotail.channel.contained import Contained
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber
from zerotail.core.receiver import Welcome
from zerotail.errors import Broken, Misused
from zerotail.ports import Accepted, Indefinite, Unreachable

pytestmark = pytest.mark.fast

LANE = Lane(ChannelName("bank"), PartitionNumber(0))


class Rude:
    """Raises what it is told to, and answers else."""

    def __init__(self) -> None:
        self.raises: Exception | None = None
        self.closed = 0

    def claim(self, _: object) -> Any:
        return self._answer(Welcome(EmissionNumber(0), None))

    def send(self, _: object) -> Any:
        return self._answer(Accepted(EmissionNumber(1)))

    def close(self) -> None:
        self.closed += 1

    def _answer(self, answer: Any) -> Any:
        if self.raises is not None:
            raise self.raises
        return answer


def test_what_a_receiver_has_taken_is_counted() -> None:
    rude, taken = Rude(), list[int]()
    contained = Contained(lambda: rude, taken.append)
    contained.send(batch(LANE, 1, 3))
    rude.raises = RuntimeError("odd")
    contained.send(batch(LANE, 4, 9))
    assert taken == [3]


@pytest.mark.parametrize("error", [RuntimeError("odd"), KeyError("verdicts"), Broken("no"), UnicodeError()])
def test_what_a_receiver_raises_says_nothing_of_what_was_sent(error: Exception) -> None:
    rude = Rude()
    contained = Contained(lambda: rude)
    assert contained.send(batch(LANE, 1, 1)) == Accepted(EmissionNumber(1))
    rude.raises = error
    for answer in (contained.send(batch(LANE, 2, 2)), contained.claim(claim(LANE))):
        assert isinstance(answer, Indefinite)
        assert type(error).__name__ in answer.reason
    assert rude.closed == 2
    rude.raises = None
    assert contained.send(batch(LANE, 2, 2)) == Accepted(EmissionNumber(1)), "it is opened again"
    contained.close()
    contained.close()
    assert rude.closed == 3


def test_settings_that_cannot_be_used_have_carried_nothing_and_may_be_mended() -> None:
    rude, mended = Rude(), False

    def open_it() -> Rude:
        if not mended:
            raise Misused("the file token is not there.")
        return rude

    contained = Contained(open_it)
    asked: list[Callable[[], object]] = [
        lambda: contained.claim(claim(LANE)),
        lambda: contained.send(batch(LANE, 1, 1)),
    ]
    for ask in asked:
        answer = ask()
        assert isinstance(answer, Unreachable)
        assert "the file token is not there" in answer.reason
    mended = True
    assert contained.claim(claim(LANE)) == Welcome(EmissionNumber(0), None)
