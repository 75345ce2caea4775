"""What the class of a channel says to a message: the table "Classes" of the protocol page, no more."""

from __future__ import annotations

from typing import assert_never

from zerotail.lab.receiver.protocol import ReceiverClass, Sender, Verdict


def judge(
    receiver_class: ReceiverClass,
    number: int,
    sender: Sender,
    *,
    last: int,
    was_accepted: bool,
    highest: Sender | None,
) -> Verdict:
    """The verdict on one message.

    `last` is the highest number accepted so far, `was_accepted` says whether this very number was, and
    `highest` is the newest sender that the channel has met.
    """
    match receiver_class:
        case ReceiverClass.R0:
            return _in_order(number, last)
        case ReceiverClass.R1:
            return Verdict.REPEAT_DROPPED if was_accepted else Verdict.ACCEPTED
        case ReceiverClass.R2:
            if is_older(sender, highest):
                return Verdict.OLDER_EPOCH_REFUSED
            return _in_order(number, last)
        case ReceiverClass.R3:
            return Verdict.ACCEPTED
        case _:
            assert_never(receiver_class)


def judge_claim(receiver_class: ReceiverClass, sender: Sender, highest: Sender | None) -> Verdict:
    """The verdict on a claim; only class R2 ever refuses one."""
    if receiver_class is ReceiverClass.R2 and is_older(sender, highest):
        return Verdict.OLDER_EPOCH_REFUSED
    return Verdict.ACCEPTED


def is_of_another(receiver_class: ReceiverClass, installation: str, owner: str | None) -> bool:
    """Whether a sender is of another installation than the one whose numbers stand there; R1 keeps them apart."""
    return receiver_class in (ReceiverClass.R0, ReceiverClass.R2) and owner is not None and owner != installation


def is_older(sender: Sender, highest: Sender | None) -> bool:
    """Whether another sender has come later than this one."""
    return highest is not None and sender < highest


def _in_order(number: int, last: int) -> Verdict:
    if number == last + 1:
        return Verdict.ACCEPTED
    return Verdict.REPEAT_DROPPED if number <= last else Verdict.GAP_REFUSED
