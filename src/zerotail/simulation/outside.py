"""The outside: receivers of every class, and the only judge of what was sent.

A receiver keeps its contract whatever happens; what goes wrong are the requests and the answers on the way.
It notes every attempt with the answer it gave. Those in use keep the same contract: one body of tests asks both
(`tests/integration/channel/test_contract.py`).

Receivers of class R0 differ in how they tell senders apart, so a simulated one is of a kind:

    HTTP        not at all: whoever has the next number is heard (R2, which is always of this kind, looks at claims)
    POSTGRES    by the newest claim, which stands in the row with the last number
    KAFKA       by the producer: who claimed last, whoever that is, unless a newer sender has written a message.
                After any failure a producer is gone, and nothing is sent before a new claim
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Indefinite,
    OtherInstallation,
    OutOfOrder,
    SendEmissions,
    Superseded,
    Unreachable,
)

OVERLAP = "batch began with what was taken already"
CLAIMED_ONLY = "older sender came after a claim, before a message"
CLAIMED_BACK = "older sender claimed after a newer one, before a message"

Claim = tuple[Epoch, Incarnation]


class Kind(Enum):
    """What stands outside."""

    HTTP = "http"
    KAFKA = "kafka"
    POSTGRES = "postgres"


class Writer:
    """Who reaches a receiver: from which site, and with which producer of a topic."""

    __slots__ = ("producer", "site")

    def __init__(self, site: Any) -> None:
        self.site = site
        self.producer = 0
        """0 for none; a newer one has a higher number."""


class Attempt:
    """One message that arrived at a receiver."""

    __slots__ = ("answer", "epoch", "incarnation", "installation", "lane", "number", "site", "time", "value")

    def __init__(self, time: int, site: str, effect: SendEmissions, number: int, value: bytes, answer: str) -> None:
        self.time = time
        self.site = site
        self.lane = effect.lane
        self.epoch = effect.epoch
        self.incarnation = effect.incarnation
        self.installation = effect.installation
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

    __slots__ = (
        "accepted",
        "attempts",
        "claim",
        "claims",
        "installation",
        "kind",
        "lane",
        "last",
        "mark",
        "newest_producer",
        "notes",
        "numbers",
        "receiver",
    )

    def __init__(
        self,
        lane: Lane,
        receiver: ReceiverClass,
        notes: list[Attempt | ClaimNoted],
        kind: Kind = Kind.HTTP,
        mark: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.lane = lane
        self.receiver = receiver
        self.kind = kind if receiver in (ReceiverClass.R0, ReceiverClass.R1) else Kind.HTTP
        self.accepted: list[Attempt] = []
        """What had an effect, in the order in which it had it."""
        self.numbers: set[tuple[str, int]] = set()
        """Their installations and numbers."""
        self.installation: str | None = None
        """Whose numbers these are, where there can be only one; None before the first."""
        self.last = EmissionNumber(0)
        """The highest of these."""
        self.attempts: list[Attempt] = []
        self.claim: Claim | None = None
        """Who sends, as far as this receiver looks at that: the newest sender, or the last to claim a topic."""
        self.claims: set[Claim] = set()
        self.newest_producer = 0
        self.notes = notes
        self.mark = mark

    @property
    def fences(self) -> bool:
        """Whether it can refuse an older sender."""
        return self.receiver is ReceiverClass.R2 or self._is_r0(Kind.KAFKA, Kind.POSTGRES)

    def claimed(self, time: int, writer: Writer, effect: ClaimAtReceiver) -> Welcome | Superseded | OtherInstallation:
        """Somebody says that it sends from now on."""
        if self._belongs_to_another(effect.installation):
            return OtherInstallation(self.installation or "")
        newer = self._newer_than((effect.epoch, effect.incarnation))
        self.notes.append(ClaimNoted(time, writer.site, effect, newer is None))
        if newer is not None:
            return Superseded(newer)
        self._enter((effect.epoch, effect.incarnation), writer)
        if self.receiver is ReceiverClass.R3 or (self.receiver is ReceiverClass.R1 and self.kind is not Kind.HTTP):
            return Welcome(None, None)
        return Welcome(self.last, self.accepted[-1].epoch if self.accepted else None)

    def arrived(self, time: int, writer: Writer, effect: SendEmissions) -> Any:
        """A batch arrives; the answer."""
        if self._belongs_to_another(effect.installation):
            return OtherInstallation(self.installation or "")
        if self._is_r0(Kind.KAFKA):
            return self._with_producer(time, writer, effect)
        if self.receiver.remembers:
            return self._in_order(time, writer.site, effect)
        of = effect.installation
        first, last = (of, effect.first) in self.numbers, (of, effect.last) in self.numbers
        if self.receiver is ReceiverClass.R1 and first and not last:
            self.mark(OVERLAP)
        for number, value in enumerate(effect.values, effect.first):
            known = self.receiver is ReceiverClass.R1 and (of, number) in self.numbers
            self._note(time, writer.site, effect, number, value, "repeat" if known else "accepted")
        return Accepted(effect.last)

    def unreached(self, writer: Writer, effect: SendEmissions) -> Any:
        """A batch that finds no way to the receiver; what its sender is told."""
        if not self._is_r0(Kind.KAFKA):
            return Unreachable()
        had, writer.producer = writer.producer, 0
        return Indefinite() if had else OutOfOrder(EmissionNumber(effect.first - 1))

    def _belongs_to_another(self, installation: str) -> bool:
        """Whether its numbers are those of another installation; the first one that comes has it for itself."""
        if not self.receiver.remembers:
            return False
        if self.installation is None:
            self.installation = installation
        return installation != self.installation

    def _is_r0(self, *kinds: Kind) -> bool:
        return self.receiver is ReceiverClass.R0 and self.kind in kinds

    def _newer_than(self, mine: Claim) -> Epoch | None:
        """The epoch of a sender for which a claim is refused."""
        if not self.fences:
            return None
        newest = self.claim
        if self.kind is Kind.KAFKA:
            newest = (self.accepted[-1].epoch, self.accepted[-1].incarnation) if self.accepted else None
            if self.claim is not None and mine < self.claim and (newest is None or mine >= newest):
                self.mark(CLAIMED_BACK)
        return newest[0] if newest is not None and mine < newest else None

    def _enter(self, mine: Claim, writer: Writer) -> None:
        self.claims.add(mine)
        if self._is_r0(Kind.KAFKA):
            self.claim = mine
            self.newest_producer += 1
            writer.producer = self.newest_producer
        elif self.claim is None or mine > self.claim:
            self.claim = mine

    def _with_producer(self, time: int, writer: Writer, effect: SendEmissions) -> Any:
        """As a transaction: of the newest producer only."""
        if not writer.producer:
            return OutOfOrder(EmissionNumber(effect.first - 1))
        if writer.producer == self.newest_producer:
            return self._in_order(time, writer.site, effect)
        writer.producer = 0
        self._note_older(time, writer.site, effect)
        return Indefinite()

    def _in_order(self, time: int, site: str, effect: SendEmissions) -> Any:
        mine = (effect.epoch, effect.incarnation)
        if self.kind is Kind.POSTGRES and self.claim is None:
            return OutOfOrder(EmissionNumber(0))
        if self.claim is not None and mine < self.claim:
            if self.fences:
                self._note_older(time, site, effect)
                return Superseded(self.claim[0])
            self._mark_claimed_only(mine)
        before = self.last
        if effect.first > before + 1:
            self._note(time, site, effect, effect.first, effect.values[0], "gap")
            return OutOfOrder(before)
        if effect.first <= before < effect.last:
            self.mark(OVERLAP)
        for number, value in enumerate(effect.values, effect.first):
            self._note(time, site, effect, number, value, "repeat" if number <= before else "accepted")
        if self.kind is Kind.HTTP and (self.claim is None or mine > self.claim):
            self.claim = mine
        return Accepted(effect.last if self.kind is Kind.HTTP else self.last)

    def _note_older(self, time: int, site: str, effect: SendEmissions) -> None:
        self._mark_claimed_only((effect.epoch, effect.incarnation))
        for number, value in enumerate(effect.values, effect.first):
            self._note(time, site, effect, number, value, "older-epoch")

    def _mark_claimed_only(self, mine: Claim) -> None:
        """The rare moment: an older sender's message comes, and the one that claimed has not written any yet."""
        written = (self.accepted[-1].epoch, self.accepted[-1].incarnation) if self.accepted else None
        if self.claim is not None and mine < self.claim and written != self.claim:
            self.mark(CLAIMED_ONLY)

    def _note(self, time: int, site: str, effect: SendEmissions, number: int, value: bytes, answer: str) -> None:
        attempt = Attempt(time, site, effect, number, value, answer)
        self.attempts.append(attempt)
        self.notes.append(attempt)
        if answer == "accepted":
            self.accepted.append(attempt)
            self.numbers.add((effect.installation, number))
            self.last = EmissionNumber(max(self.last, number))
