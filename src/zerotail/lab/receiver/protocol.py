"""The words of `docs/receiver-protocol.md` as types: what comes in, what goes out, what is remembered."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

MAX_BATCH_MESSAGES = 10_000
MAX_PAGE_ATTEMPTS = 10_000
DEFAULT_PAGE_ATTEMPTS = 1_000

_MOST = (1 << 63) - 1
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
PartitionField = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
NumberField = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
EpochField = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
IncarnationField = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]


class ReceiverClass(StrEnum):
    """What the receiver of a channel can do."""

    R0 = "R0"
    R1 = "R1"
    R2 = "R2"
    R3 = "R3"


class Verdict(StrEnum):
    """What became of an attempt."""

    ACCEPTED = "accepted"
    REPEAT_DROPPED = "repeat_dropped"
    GAP_REFUSED = "gap_refused"
    OLDER_EPOCH_REFUSED = "older_epoch_refused"
    BEHIND_REFUSED = "behind_refused"
    OTHER_INSTALLATION_REFUSED = "other_installation_refused"

    @property
    def refuses(self) -> bool:
        """Whether the message has no effect, now or from before."""
        return self not in (Verdict.ACCEPTED, Verdict.REPEAT_DROPPED)


class Sender(msgspec.Struct, frozen=True, order=True):
    """A sender's place in time: a later epoch is newer, in one epoch a later incarnation."""

    epoch: int
    incarnation: int


# what comes in


class _Incoming(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Item(_Incoming, frozen=True):
    """One message inside a batch."""

    number: NumberField
    body: bytes
    possible_duplicate: bool = False


class _Envelope(_Incoming, frozen=True, kw_only=True):
    channel: Text
    partition: PartitionField
    epoch: EpochField
    incarnation: IncarnationField
    site: Text
    installation: str = ""
    """What the header says, whatever stands here."""

    @property
    def sender(self) -> Sender:
        """Who sends it."""
        return Sender(self.epoch, self.incarnation)


class Batch(_Envelope, frozen=True, kw_only=True):
    """Messages of one channel and partition, in the order in which they are to be judged."""

    messages: Annotated[list[Item], msgspec.Meta(min_length=1, max_length=MAX_BATCH_MESSAGES)]


class Message(_Envelope, frozen=True, kw_only=True):
    """One message."""

    number: NumberField
    body: bytes
    possible_duplicate: bool = False

    def as_batch(self) -> Batch:
        """The batch that has only this message."""
        item = Item(number=self.number, possible_duplicate=self.possible_duplicate, body=self.body)
        return Batch(
            channel=self.channel,
            epoch=self.epoch,
            incarnation=self.incarnation,
            site=self.site,
            partition=self.partition,
            messages=[item],
            installation=self.installation,
        )


class Claim(_Envelope, frozen=True, kw_only=True):
    """A sender takes a channel's partition."""


class BehaviourChange(_Incoming, frozen=True):
    """The fields of the behaviour that are to change."""

    lose_answers: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | UnsetType = UNSET
    slow_ms: Annotated[float, msgspec.Meta(ge=0, le=600_000)] | UnsetType = UNSET
    unavailable: bool | UnsetType = UNSET
    refuse_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] | UnsetType = UNSET
    detain: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | UnsetType = UNSET
    rudeness: Literal["", "silent", "redirect", "garbage", "endless", "forbidden", "ahead"] | UnsetType = UNSET
    rude_to: PartitionField | UnsetType = UNSET


# what is remembered


class MessageAttempt(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="message"):
    """One message that arrived, whatever became of it."""

    sequence: int
    channel: str
    partition: int
    number: int
    epoch: int
    incarnation: int
    site: str
    possible_duplicate: bool
    digest: str
    size_bytes: int
    unix_seconds: float
    receiver_class: ReceiverClass = msgspec.field(name="class")
    verdict: Verdict
    same_bytes: bool | None
    installation: str = ""

    @property
    def sender(self) -> Sender:
        """Who sent it."""
        return Sender(self.epoch, self.incarnation)


class ClaimAttempt(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="claim"):
    """One claim that arrived."""

    sequence: int
    channel: str
    partition: int
    epoch: int
    incarnation: int
    site: str
    unix_seconds: float
    receiver_class: ReceiverClass = msgspec.field(name="class")
    verdict: Verdict
    installation: str = ""

    @property
    def sender(self) -> Sender:
        """Who claimed."""
        return Sender(self.epoch, self.incarnation)


Attempt = MessageAttempt | ClaimAttempt


# what goes out


class MessageTaken(msgspec.Struct, frozen=True):
    """The answer to one message that has its effect."""

    verdict: Verdict
    last_accepted: int | None


class MessageRefused(msgspec.Struct, frozen=True):
    """The answer to one message that has none."""

    error: str
    verdict: Verdict
    last_accepted: int | None
    highest: Sender | None
    installation: str | UnsetType = UNSET
    """Whose the channel and partition are, where that is why."""


class BatchTaken(msgspec.Struct, frozen=True):
    """The answer to a batch in which nothing was refused."""

    verdicts: list[Verdict]
    last_accepted: int | None


class BatchRefused(msgspec.Struct, frozen=True):
    """The answer to a batch in which something was."""

    error: str
    verdicts: list[Verdict]
    last_accepted: int | None
    highest: Sender | None
    installation: str | UnsetType = UNSET


class ClaimTaken(msgspec.Struct, frozen=True):
    """The answer to a claim: where to go on, and in which epoch the last message was sent."""

    last_accepted: int | None
    last_epoch: int | None
    highest: Sender | None


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any other answer that is not 2xx."""

    error: str
    highest: Sender | None = None
    installation: str | UnsetType = UNSET


class LastAccepted(msgspec.Struct, frozen=True):
    """The answer to `GET /last`."""

    channel: str
    partition: int
    receiver_class: ReceiverClass = msgspec.field(name="class")
    last_accepted: int | None
    highest: Sender | None
    installation: str | UnsetType = UNSET
    """Whose numbers these are, if they are those of another one than whoever asks."""


class PartitionTotals(msgspec.Struct, frozen=True):
    """What happened on one channel and partition, in numbers."""

    channel: str
    partition: int
    receiver_class: ReceiverClass = msgspec.field(name="class")
    accepted: int
    distinct: int
    repeats_accepted: int
    repeats_dropped: int
    gaps_refused: int
    older_epochs_refused: int
    behind_refused: int
    different_bytes: int
    out_of_order: int
    highest: int
    missing: int
    installation: str = ""
    other_installations_refused: int = 0


class Totals(msgspec.Struct, frozen=True):
    """What happened on all of them."""

    partitions: tuple[PartitionTotals, ...]

    def of(self, channel: str, partition: int) -> PartitionTotals:
        """The totals of one; `KeyError` if nothing was ever attempted there."""
        return {(totals.channel, totals.partition): totals for totals in self.partitions}[channel, partition]


class Behaviour(msgspec.Struct, frozen=True):
    """How the receiver misbehaves at the moment."""

    lose_answers: int = 0
    slow_ms: float = 0
    unavailable: bool = False
    refuse_seconds: float = 0
    detain: int = 0
    """So many deliveries will still be kept back."""
    detained: int = 0
    """So many are kept back now, unjudged."""
    rudeness: str = ""
    rude_to: int = 0
    """The partition whose senders hear what is of no protocol."""
    rude_answers: int = 0
    """So many were given so far."""


class ReceiverStatus(msgspec.Struct, frozen=True):
    """What the receiver says of itself."""

    process_id: int
    channels: dict[str, ReceiverClass]
    end_sequence: int
    behaviour: Behaviour


class AttemptsPage(msgspec.Struct, frozen=True):
    """Some attempts in order; `end_sequence` is the last one that exists."""

    attempts: tuple[Attempt, ...]
    end_sequence: int
