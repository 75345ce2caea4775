"""What the receiver knows: for each channel and partition its newest sender, and what was accepted.

The ledger is a function of the attempts in their order and of nothing else. A running receiver and one that
reads its file after a crash call the same `remember`, so they cannot know different things.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zerotail.lab.receiver.protocol import (
    Attempt,
    ClaimAttempt,
    MessageAttempt,
    PartitionTotals,
    ReceiverClass,
    Sender,
    Verdict,
)

_DIGEST_BYTES = 32


class Digests:
    """The digest of every accepted number.

    Numbers are dense in the end, so 1, 2, 3, … lie packed side by side; only what is ahead of a hole needs a
    dictionary.
    """

    def __init__(self) -> None:
        self._packed = bytearray()
        self._ahead: dict[int, bytes] = {}
        self.highest = 0

    def __len__(self) -> int:
        return len(self._packed) // _DIGEST_BYTES + len(self._ahead)

    def __contains__(self, number: int) -> bool:
        return number * _DIGEST_BYTES <= len(self._packed) or number in self._ahead

    def find(self, number: int) -> bytes | None:
        """The digest under which the number was accepted first."""
        end = number * _DIGEST_BYTES
        if end <= len(self._packed):
            return bytes(self._packed[end - _DIGEST_BYTES : end])
        return self._ahead.get(number)

    def add(self, number: int, digest: bytes) -> None:
        """Remember a number that is not known yet."""
        self.highest = max(self.highest, number)
        if (number - 1) * _DIGEST_BYTES != len(self._packed):
            self._ahead[number] = digest
            return
        self._packed += digest
        while self._ahead and (following := self._ahead.pop(len(self._packed) // _DIGEST_BYTES + 1, None)):
            self._packed += following


@dataclass(slots=True)
class Book:
    """One channel and partition."""

    highest: Sender | None = None
    """The newest sender that claimed it, or had a message accepted on it."""
    last_epoch: int | None = None
    """In which epoch the highest accepted number was sent."""
    digests: Digests = field(default_factory=Digests)
    refused: dict[int, bytes] = field(default_factory=dict)
    counts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))
    different_bytes: int = 0
    out_of_order: int = 0

    def has_same_bytes(self, number: int, digest: bytes) -> bool | None:
        """Whether these are the bytes that this number had before; None if it was never seen."""
        known = self.digests.find(number) or self.refused.get(number)
        return None if known is None else known == digest

    def meet(self, sender: Sender) -> None:
        """Somebody claimed it, or had a message accepted."""
        if self.highest is None or sender > self.highest:
            self.highest = sender

    def remember(self, attempt: MessageAttempt) -> None:
        """Enter one attempt on a message."""
        number, digest = attempt.number, bytes.fromhex(attempt.digest)
        self.counts[attempt.verdict] += 1
        self.different_bytes += attempt.same_bytes is False
        if attempt.verdict is Verdict.ACCEPTED:
            self.out_of_order += number < self.digests.highest
            self.refused.pop(number, None)
            if number > self.digests.highest:
                self.last_epoch = attempt.epoch
            if number not in self.digests:
                self.digests.add(number, digest)
        elif attempt.verdict.refuses and number not in self.digests:
            self.refused[number] = digest


class Ledger:
    """All books; one exists from the first mention of its channel and partition on."""

    def __init__(self) -> None:
        self._books: dict[tuple[str, int, str], Book] = {}
        self._owners: dict[tuple[str, int], str] = {}
        self.end_sequence = 0

    @property
    def places(self) -> list[tuple[str, int, str]]:
        """The channels and partitions that anything was attempted on, and by which installation, in order."""
        return sorted(self._books)

    def owner(self, channel: str, partition: int) -> str | None:
        """The installation that claimed a channel and partition, or had a message accepted there, before any other."""
        return self._owners.get((channel, partition))

    def book(self, channel: str, partition: int, installation: str | None = None) -> Book:
        """What is known of a channel and partition, of an installation or of its owner; an empty book if nothing is."""
        if installation is None:
            installation = self.owner(channel, partition) or ""
        return self._books.get((channel, partition, installation)) or Book()

    def remember(self, attempt: Attempt) -> None:
        """Enter one attempt; attempts come in the order of their sequence."""
        self.end_sequence = attempt.sequence
        place = (attempt.channel, attempt.partition)
        book = self._books.setdefault((*place, attempt.installation), Book())
        if attempt.verdict is Verdict.ACCEPTED:
            self._owners.setdefault(place, attempt.installation)
            book.meet(attempt.sender)
        match attempt:
            case MessageAttempt():
                book.remember(attempt)
            case ClaimAttempt():
                pass

    def totals(
        self, channel: str, partition: int, receiver_class: ReceiverClass, installation: str | None = None
    ) -> PartitionTotals:
        """The numbers of one channel and partition, of one installation."""
        book = self.book(channel, partition, installation)
        distinct = len(book.digests)
        return PartitionTotals(
            channel=channel,
            partition=partition,
            receiver_class=receiver_class,
            accepted=book.counts[Verdict.ACCEPTED],
            distinct=distinct,
            repeats_accepted=book.counts[Verdict.ACCEPTED] - distinct,
            repeats_dropped=book.counts[Verdict.REPEAT_DROPPED],
            gaps_refused=book.counts[Verdict.GAP_REFUSED],
            older_epochs_refused=book.counts[Verdict.OLDER_EPOCH_REFUSED],
            behind_refused=book.counts[Verdict.BEHIND_REFUSED],
            different_bytes=book.different_bytes,
            out_of_order=book.out_of_order,
            highest=book.digests.highest,
            missing=book.digests.highest - distinct,
            installation=installation or "",
            other_installations_refused=book.counts[Verdict.OTHER_INSTALLATION_REFUSED],
        )
