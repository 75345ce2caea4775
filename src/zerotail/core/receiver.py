"""Receivers: what each class can do, and where a sender that starts goes on.

    R0  stores our number in the transaction of the effect, and requires last + 1
    R1  drops a repeated number
    R2  says the last number it accepted, takes only last + 1, refuses a claim older than one it has met
    R3  can do none of this: what one crash of a sender leaves in doubt is listed

A sender that starts claims the lane with (epoch, incarnation) and learns where to go on (I10):

1. acknowledged <= receiver's last <= journaled (I9). If not, two histories have met: stop, never guess.
2. The last message that the receiver accepted must have been sent in an epoch of our own lineage. Otherwise
   a site that was believed dead has sent meanwhile, and an equal number may hide another message (I21). The
   claim itself would not show it: whoever claims twice finds only its own claim before it.
3. R3 alone may have doubts: the numbers between what was acknowledged and what was intended.
4. R3 has a lease, too, since it cannot refuse an older sender: a sender sends only so long behind its intent, by its
   own clock, and numbers in doubt are settled only when that time is over for whoever was at work before they were
   listed. So a sender that stood still and goes on later sends nothing that a person has decided about meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from zerotail.core.emission import Lane
from zerotail.core.epoch import Lineage
from zerotail.core.identity import EmissionNumber, Epoch
from zerotail.errors import Broken

LEASE_SECONDS = 2.0
"""So long behind an intent its sender may send."""
SETTLED_AFTER_SECONDS = 3.0
"""So long behind the list of what is in doubt it may be settled: other machines have other clocks."""

OF_THE_RECEIVER = "the receiver "
"""So begins every reason to wait that is a receiver's."""


class ReceiverClass(Enum):
    """What a receiver can do."""

    R0 = "R0"
    R1 = "R1"
    R2 = "R2"
    R3 = "R3"

    @property
    def remembers(self) -> bool:
        """Whether it can be asked for the last number it accepted."""
        return self in (ReceiverClass.R0, ReceiverClass.R2)


class DoubtPolicy(Enum):
    """What to do with numbers that an R3 receiver may or may not have got."""

    HOLD = "hold"
    RESEND = "resend"


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """What the database knows of a lane."""

    journaled: EmissionNumber
    acknowledged: EmissionNumber
    intended: EmissionNumber
    """R3: the highest number that may have been sent; equal to `acknowledged` when nothing is in doubt."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a receiver answers to a claim."""

    last: EmissionNumber | None
    """The last number it accepted; None when it cannot tell, which is not 0."""
    last_epoch: Epoch | None
    """The epoch in which that number was sent; None before the first one."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with `next_number`; numbers up to `doubtful_until` may be repeats and are flagged as such."""

    next_number: EmissionNumber
    doubtful_until: EmissionNumber


@dataclass(frozen=True, slots=True)
class Doubt:
    """The receiver may or may not have got the numbers from `first` to `last`; an operator has to settle
    it.
    """

    first: EmissionNumber
    last: EmissionNumber


def plan_resume(
    lane: Lane, receiver: ReceiverClass, record: LaneRecord, welcome: Welcome | None, policy: DoubtPolicy
) -> Resume | Doubt:
    """Where a sender goes on; `Broken` when what the receiver says cannot be of this history."""
    if receiver is ReceiverClass.R3:
        if record.intended > record.acknowledged and policy is DoubtPolicy.HOLD:
            return Doubt(EmissionNumber(record.acknowledged + 1), record.intended)
        return Resume(EmissionNumber(record.acknowledged + 1), record.intended)
    if welcome is None or welcome.last is None:
        return Resume(EmissionNumber(record.acknowledged + 1), record.journaled)
    if not record.acknowledged <= welcome.last <= record.journaled:
        raise Broken(
            f"the receiver of {lane.channel} has {welcome.last} messages of partition {lane.partition}, but "
            f"{record.acknowledged} were acknowledged and {record.journaled} are journaled here",
            code="ZT601",
            why="Two histories have met: an equal number may stand for another message.",
            tries=("zerotail journal compare", f"zerotail emissions list --channel {lane.channel}"),
        )
    return Resume(EmissionNumber(welcome.last + 1), EmissionNumber(0))


def find_unseen(last: EmissionNumber, first: EmissionNumber, values: Sequence[bytes]) -> Sequence[bytes] | None:
    """What of a batch a receiver that has everything up to `last` does not have yet; None when it would leave a gap."""
    return None if first > last + 1 else values[last + 1 - first :]


def is_of(lineage: Lineage, welcome: Welcome) -> bool:
    """Whether the receiver's last message was sent in this history; one that had none knows no other."""
    return welcome.last_epoch is None or welcome.last_epoch in lineage


def require_own_lineage(lane: Lane, lineage: Lineage, welcome: Welcome) -> None:
    """`Broken` when the receiver's last message came from a site that is not part of this history."""
    if not is_of(lineage, welcome):
        raise Broken(
            f"the last message of {lane.channel} partition {lane.partition} was sent in epoch {welcome.last_epoch}, "
            f"which is not part of the history of epoch {lineage.current.epoch}",
            code="ZT602",
            why="Another site has sent on its own; what it sent may differ from what is journaled here. The lane goes "
            "on once the receiver's owner has put its last number and epoch back to one of this history.",
            tries=("zerotail status", f"zerotail emissions list --channel {lane.channel}"),
        )
