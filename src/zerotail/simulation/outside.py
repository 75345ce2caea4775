"""The outside: receivers of every class, and the only judge of what was sent.

A receiver keeps its contract whatever happens; what goes wrong are the requests and the answers on the way.
It notes every attempt with the answer it gave.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.ports import Accepted, ClaimAtReceiver, Conflicting, OutOfOrder, SendEmissions, Superseded


class Attempt:
    """One message that arrived at a receiver."""

    __slots__ = ("answer", "epoch", "incarnation", "lane", "number", "site", "time", "value")

    def __init__(self, time: int, site: str, effect: SendEmissions, number: int, value: bytes, answer: str) -> None:
        self.time = time
        self.site = site
        self.lane = effect.lane
        self.epoch = effect.epoch
        self.incarnation = effect.incarnation
        self.number = number
        self.value = value
        self.answer = answer


class ClaimNoted(NamedTuple):
    """One claim that arrived at a receiver."""

    time: int
    site: str
    effect: ClaimAtReceiver
    allowed: bool


class Receiver:
    """The receiver of one lane."""

    __slots__ = ("accepted", "attempts", "claim", "claims", "lane", "notes", "receiver")

    def __init__(self, lane: Lane, receiver: ReceiverClass, notes: list[Attempt | ClaimNoted]) -> None:
        self.lane = lane
        self.receiver = receiver
        self.accepted: list[Attempt] = []
        """What had an effect, in the order in which it had it."""
        self.attempts: list[Attempt] = []
        self.claim: tuple[Epoch, Incarnation] | None = None
        self.claims: set[tuple[Epoch, Incarnation]] = set()
        self.notes = notes

    @property
    def last(self) -> EmissionNumber:
        """The last number that had an effect."""
        return EmissionNumber(self.accepted[-1].number if self.accepted else 0)

    def claimed(self, time: int, site: str, effect: ClaimAtReceiver) -> Welcome | Superseded:
        """Somebody says that it sends from now on."""
        mine = (effect.epoch, effect.incarnation)
        before = self.claim
        allowed = before is None or mine >= before
        self.notes.append(ClaimNoted(time, site, effect, allowed))
        if before is not None and mine < before:
            return Superseded(before[0])
        self.claim = mine
        self.claims.add(mine)
        return Welcome(self.last, self.accepted[-1].epoch if self.accepted else None)

    def arrived(self, time: int, site: str, effect: SendEmissions) -> Any:
        """A batch arrives; the answer."""
        if self.receiver.remembers:
            return self._in_order(time, site, effect)
        if self.receiver is ReceiverClass.R1:
            return self._by_number(time, site, effect)
        for number, value in enumerate(effect.values, effect.first):
            self._note(time, site, effect, number, value, "accepted")
        return Accepted(EmissionNumber(effect.first + len(effect.values) - 1))

    def _in_order(self, time: int, site: str, effect: SendEmissions) -> Any:
        if self.claim is not None and (effect.epoch, effect.incarnation) < self.claim:
            for number, value in enumerate(effect.values, effect.first):
                self._note(time, site, effect, number, value, "older-epoch")
            return Superseded(self.claim[0])
        for number, value in enumerate(effect.values, effect.first):
            last = self.last
            if number != last + 1:
                self._note(time, site, effect, number, value, "repeat" if number <= last else "gap")
                return OutOfOrder(last)
            self._note(time, site, effect, number, value, "accepted")
        return Accepted(self.last)

    def _by_number(self, time: int, site: str, effect: SendEmissions) -> Any:
        known = {attempt.number: attempt.value for attempt in self.accepted}
        for number, value in enumerate(effect.values, effect.first):
            if number not in known:
                self._note(time, site, effect, number, value, "accepted")
            else:
                self._note(time, site, effect, number, value, "repeat")
                if known[number] != value:
                    return Conflicting(EmissionNumber(number))
        return Accepted(EmissionNumber(effect.first + len(effect.values) - 1))

    def _note(self, time: int, site: str, effect: SendEmissions, number: int, value: bytes, answer: str) -> None:
        attempt = Attempt(time, site, effect, number, value, answer)
        self.attempts.append(attempt)
        self.notes.append(attempt)
        if answer == "accepted":
            self.accepted.append(attempt)
