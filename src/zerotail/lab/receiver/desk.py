"""The desk: takes a request of the protocol, has it judged and written down, and gives the answer when that
is on disk.

Judging happens in one thread, without a pause between reading the ledger and entering the attempt; so the
order of the record is the order of judgement. Every answer waits until the record has settled, also one that
only reads: it may speak of a message whose own answer has not left yet.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET, UnsetType

from zerotail.lab.receiver.judgement import is_of_another, judge, judge_claim
from zerotail.lab.receiver.ledger import Ledger
from zerotail.lab.receiver.protocol import (
    Attempt,
    Batch,
    BatchRefused,
    BatchTaken,
    Claim,
    ClaimAttempt,
    ClaimTaken,
    LastAccepted,
    Message,
    MessageAttempt,
    MessageRefused,
    MessageTaken,
    Problem,
    ReceiverClass,
    Sender,
    Totals,
    Verdict,
)
from zerotail.lab.receiver.record import Record
from zerotail.lab.receiver.settings import ReceiverSettings


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a batch; `refusal` is a sentence about the first refused message, empty if there is
    none.
    """

    verdicts: list[Verdict]
    refusal: str
    last_accepted: int | None
    highest: Sender | None
    installation: str | UnsetType = UNSET


class Desk:
    """Opens the record of the configured folder, and knows what is in it."""

    def __init__(self, settings: ReceiverSettings) -> None:
        self._class_of = settings.class_of
        self._ledger = Ledger()
        self._record = Record(Path(settings.folder), self._ledger.remember)

    @property
    def settled_sequence(self) -> int:
        """The last attempt that is on disk."""
        return self._record.settled_sequence

    async def settle(self) -> None:
        """Return when everything judged so far is on disk."""
        await self._record.settle()

    def close(self) -> None:
        """Let go of the record."""
        self._record.close()

    async def take_message(self, message: Message) -> MessageTaken | MessageRefused:
        """Judge one message."""
        outcome = await self._take(message.as_batch())
        [verdict] = outcome.verdicts
        if outcome.refusal:
            return MessageRefused(
                outcome.refusal, verdict, outcome.last_accepted, outcome.highest, outcome.installation
            )
        return MessageTaken(verdict, outcome.last_accepted)

    async def take_batch(self, batch: Batch) -> BatchTaken | BatchRefused:
        """Judge message by message; behind the first refused one nothing is judged."""
        outcome = await self._take(batch)
        if outcome.refusal:
            return BatchRefused(
                outcome.refusal, outcome.verdicts, outcome.last_accepted, outcome.highest, outcome.installation
            )
        return BatchTaken(outcome.verdicts, outcome.last_accepted)

    async def _take(self, batch: Batch) -> _Outcome:
        verdicts: list[Verdict] = []
        refusal = ""
        unix_seconds = time.time()
        for item in batch.messages:
            verdict = Verdict.BEHIND_REFUSED if refusal else self._judge(batch, item.number)
            if verdict.refuses and not refusal:
                refusal = self._explain(batch, item.number, verdict)
            digest = hashlib.sha256(item.body)
            book = self._ledger.book(batch.channel, batch.partition, batch.installation)
            self._enter(
                MessageAttempt(
                    sequence=self._record.end_sequence + 1,
                    channel=batch.channel,
                    partition=batch.partition,
                    number=item.number,
                    epoch=batch.epoch,
                    incarnation=batch.incarnation,
                    site=batch.site,
                    possible_duplicate=item.possible_duplicate,
                    digest=digest.hexdigest(),
                    size_bytes=len(item.body),
                    unix_seconds=unix_seconds,
                    receiver_class=self._class_of(batch.channel),
                    verdict=verdict,
                    same_bytes=book.has_same_bytes(item.number, digest.digest()),
                    installation=batch.installation,
                )
            )
            verdicts.append(verdict)
        last, highest = self._last(batch), self._highest(batch)
        owner = self._other(batch) if Verdict.OTHER_INSTALLATION_REFUSED in verdicts else UNSET
        await self.settle()
        return _Outcome(verdicts, refusal, last, highest, owner)

    async def take_claim(self, claim: Claim) -> ClaimTaken | Problem:
        """Let a sender take a channel's partition, unless a newer one has."""
        receiver_class = self._class_of(claim.channel)
        other = self._other(claim)
        verdict = Verdict.OTHER_INSTALLATION_REFUSED
        if other is UNSET:
            verdict = judge_claim(receiver_class, claim.sender, self._highest(claim))
        self._enter(
            ClaimAttempt(
                sequence=self._record.end_sequence + 1,
                channel=claim.channel,
                partition=claim.partition,
                epoch=claim.epoch,
                incarnation=claim.incarnation,
                site=claim.site,
                unix_seconds=time.time(),
                receiver_class=receiver_class,
                verdict=verdict,
                installation=claim.installation,
            )
        )
        last, highest = self._last(claim), self._highest(claim)
        last_epoch = self._ledger.book(claim.channel, claim.partition, claim.installation).last_epoch
        await self.settle()
        if other is not UNSET:
            return Problem(f"{_place(claim)}: {_theirs(other)}", None, other)
        if verdict.refuses:
            return Problem(f"{_place(claim)}: {_newer(claim.sender, highest)}", highest)
        return ClaimTaken(last, None if last is None else last_epoch, highest)

    async def tell_last(self, channel: str, partition: int, installation: str) -> LastAccepted:
        """How far a channel and partition are, to this installation."""
        receiver_class, book = self._class_of(channel), self._ledger.book(channel, partition)
        highest = book.highest if receiver_class is ReceiverClass.R2 else None
        last = None if receiver_class is ReceiverClass.R3 else book.digests.highest
        owner = self._ledger.owner(channel, partition)
        other = owner if owner is not None and is_of_another(receiver_class, installation, owner) else UNSET
        answer = LastAccepted(channel, partition, receiver_class, last, highest, other)
        await self.settle()
        return answer

    async def tell_totals(self) -> Totals:
        """Everything that happened, in numbers."""
        totals = tuple(
            self._ledger.totals(name, partition, self._class_of(name), installation)
            for name, partition, installation in self._ledger.places
        )
        await self.settle()
        return Totals(totals)

    async def tell_attempts(self, since_sequence: int, limit: int) -> tuple[list[bytes], int]:
        """A page of the record as it is written, and the last sequence there is."""
        await self.settle()
        return self._record.page(since_sequence, limit), self.settled_sequence

    def tell_classes(self) -> dict[str, ReceiverClass]:
        """The class of every channel that was mentioned."""
        return {name: self._class_of(name) for name, _, _ in self._ledger.places}

    def _judge(self, batch: Batch, number: int) -> Verdict:
        if self._other(batch) is not UNSET:
            return Verdict.OTHER_INSTALLATION_REFUSED
        book = self._ledger.book(batch.channel, batch.partition, batch.installation)
        return judge(
            self._class_of(batch.channel),
            number,
            batch.sender,
            last=book.digests.highest,
            was_accepted=number in book.digests,
            highest=book.highest,
        )

    def _enter(self, attempt: Attempt) -> None:
        self._ledger.remember(attempt)
        self._record.append(attempt)

    def _other(self, sent: Batch | Claim) -> str | UnsetType:
        """The installation whose numbers stand there, if it is another one and the class minds."""
        owner = self._ledger.owner(sent.channel, sent.partition)
        if owner is None or not is_of_another(self._class_of(sent.channel), sent.installation, owner):
            return UNSET
        return owner

    def _last(self, sent: Batch | Claim) -> int | None:
        if self._class_of(sent.channel) is ReceiverClass.R3:
            return None
        return self._ledger.book(sent.channel, sent.partition, sent.installation).digests.highest

    def _highest(self, sent: Batch | Claim) -> Sender | None:
        if self._class_of(sent.channel) is not ReceiverClass.R2:
            return None
        return self._ledger.book(sent.channel, sent.partition, sent.installation).highest

    def _explain(self, batch: Batch, number: int, verdict: Verdict) -> str:
        if isinstance(other := self._other(batch), str):
            return f"{_place(batch)}: {_theirs(other)}"
        if verdict is Verdict.GAP_REFUSED:
            last = self._ledger.book(batch.channel, batch.partition, batch.installation).digests.highest
            return f"{_place(batch)}: number {number} leaves a gap behind {last}"
        return f"{_place(batch)}: {_newer(batch.sender, self._highest(batch))}"


def _place(sent: Batch | Claim) -> str:
    return f"channel {sent.channel!r}, partition {sent.partition}"


def _theirs(installation: str) -> str:
    return f"the numbers here are those of installation {installation or 'without an identity'}"


def _newer(sender: Sender, highest: Sender | None) -> str:
    assert highest is not None  # noqa: S101  (nobody is older than nobody)
    return (
        f"a sender of epoch {sender.epoch}, incarnation {sender.incarnation} is older than "
        f"epoch {highest.epoch}, incarnation {highest.incarnation}, which sends there now"
    )
