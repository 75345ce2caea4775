"""The emitter: brings what is owed on one lane to its receiver, in order, one batch in flight, never before
the gate.

1. Claim the lane in the database: a new incarnation in the current epoch. An epoch is live only behind the
   gate or exposed (`failover/takeover.py`), so a receiver never meets one that the other site might not
   know.
2. Claim it at a receiver that remembers; learn its last number. Then read what the own database knows (in
   this order: the other way round a sender of a moment ago could still move the receiver ahead of what was
   read) and decide where to go on (`core.receiver.plan_resume`).
3. Read owed messages, then the log's position; wait at the gate; send one batch; note the acknowledgement.
   It is noted only *after* the receiver's answer, so it may be late and is never early (I9).
4. A receiver that neither remembers nor drops repeats (R3): the intent is durable and gated before the
   send. What lies between acknowledged and intended when a sender starts, or gets no answer, is in doubt
   and is listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from zerotail.core import receiver as receivers
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability, is_reachable
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation, Lsn, SiteName
from zerotail.core.receiver import Doubt, DoubtPolicy, ReceiverClass, Resume, Welcome
from zerotail.errors import Broken
from zerotail.flow.gate import pass_gate
from zerotail.handler import printable
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    ClaimLane,
    Conflicting,
    Done,
    End,
    Indefinite,
    LaneClaimed,
    LaneRead,
    OtherInstallation,
    OutOfOrder,
    Pause,
    ReadLane,
    RecordAcknowledged,
    RecordDoubts,
    RecordIntent,
    Refused,
    SendEmissions,
    Standing,
    Story,
    Superseded,
    Unreachable,
)

MESSAGES_PER_READ = 20_000
"""The outbox is packed by segment: reading it for each batch would unpack a long segment again and again."""

TAKES_NOTHING = "the receiver takes nothing"
NOT_SAID = "the receiver did not say whether it arrived"
NO_WELCOME = "the receiver does not answer"
NEWER_SENDER = "the receiver has met a newer sender of this epoch, which is not known here"
_MOST_REASON = 200
HELD = "the epoch is exposed, and takeover.exposed is hold"
"""Why nothing leaves although nobody was asked."""


@dataclass(frozen=True, slots=True)
class Sender:
    """One start of the emitter of one lane."""

    lane: Lane
    receiver: ReceiverClass
    site: SiteName
    policy: DoubtPolicy = DoubtPolicy.HOLD
    window: int = 100
    """Messages in one batch; for R3 also the most that one crash leaves in doubt."""
    release_exposed: bool = True


class Claim(NamedTuple):
    """As whom a sender sends; compared as a pair."""

    epoch: Epoch
    incarnation: Incarnation


def emit(sender: Sender) -> Story[End]:
    """Send what is owed until this site is not the active one any more, or a newer sender is at work."""
    # 1
    claimed = yield ClaimLane(sender.lane)
    while isinstance(claimed, Unreachable | Indefinite):
        # One claim too many is harmless: it was ours.
        yield Pause("the database does not answer")
        claimed = yield ClaimLane(sender.lane)
    if not isinstance(claimed, LaneClaimed) or not claimed.standing.live_at(sender.site):
        return End.NOT_ACTIVE
    claim = Claim(claimed.standing.epoch, claimed.incarnation)
    # 2
    resume = yield from _find_resume(sender, claim, claimed.standing.installation.outside)
    if isinstance(resume, End):
        return resume
    # 3
    while True:
        limit = max(1, MESSAGES_PER_READ // sender.window) * sender.window
        read = yield ReadLane(sender.lane, EmissionNumber(resume.next_number - 1), limit)
        if not isinstance(read, LaneRead):
            yield Pause("the database does not answer")
        elif not _still_ours(sender, claim, read):
            return End.SUPERSEDED
        elif not read.values:
            yield from _note_late(sender, claim, resume, read)
            yield Pause("nothing is owed", idle=True)
        else:
            outcome = yield from _send_all(sender, claim, resume, read)
            if isinstance(outcome, End):
                return outcome
            resume = outcome


def _send_all(sender: Sender, claim: Claim, resume: Resume, read: LaneRead) -> Story[Resume | End]:
    """Send what was read, batch by batch, as long as each arrives."""
    for place in range(0, len(read.values), sender.window):
        batch = replace(read, values=read.values[place : place + sender.window])
        behind = resume.next_number + len(batch.values)
        outcome = yield from _send_batch(sender, claim, resume, batch)
        if isinstance(outcome, End) or outcome.next_number != behind:
            return outcome
        resume = outcome
        if read.standing.lineage.current.durability is Durability.EXPOSED:
            break  # nobody is asked, so look before each batch whether that still holds
    return resume


def _send_batch(sender: Sender, claim: Claim, resume: Resume, read: LaneRead) -> Story[Resume | End]:
    """Release and send one batch; where to go on behind it, which is the same place when it did not arrive."""
    first = resume.next_number
    last = EmissionNumber(first + len(read.values) - 1)
    standing, wanted = read.standing, read.position
    if sender.receiver is ReceiverClass.R3:
        # 4
        intended = yield from _intend(sender, claim, read.standing, first, last)
        if not isinstance(intended, tuple):
            return intended or resume
        standing, wanted = intended
    release = yield from pass_gate(standing, wanted, release_exposed=sender.release_exposed)
    if release is None:
        exposed = standing.lineage.current.durability is Durability.EXPOSED
        yield Pause(HELD if exposed else "the gate is closed")
        return resume
    answer = yield SendEmissions(
        sender.lane,
        claim.epoch,
        claim.incarnation,
        first,
        read.values,
        resume.doubtful_until,
        release,
        standing.installation.outside,
    )
    match answer:
        case Accepted():
            noted = yield RecordAcknowledged(sender.lane, claim.epoch, claim.incarnation, answer.last)
            if isinstance(noted, Refused):
                return End.SUPERSEDED
            return Resume(EmissionNumber(answer.last + 1), resume.doubtful_until)
        case Superseded():
            if (yield from _is_replaced(sender, claim, answer)):
                return End.SUPERSEDED
            return End.OUT_OF_STEP
        case OtherInstallation():
            raise of_another_installation(sender.lane, answer)
        case Conflicting():
            raise _conflict(sender.lane, answer.number)
        case OutOfOrder():
            return End.OUT_OF_STEP
        case Unreachable() | Refused():
            # Nothing had an effect.
            yield Pause(_because(TAKES_NOTHING, answer), retries=True)
            return resume
        case _ if sender.receiver is ReceiverClass.R3:
            # Nobody knows whether it arrived: a new start finds the numbers in doubt, and lists them.
            return End.OUT_OF_STEP
    yield Pause(_because(NOT_SAID, answer), retries=True)
    return Resume(first, max(resume.doubtful_until, last))


def _intend(
    sender: Sender, claim: Claim, standing: Standing, first: EmissionNumber, last: EmissionNumber
) -> Story[tuple[Standing, Lsn] | End | None]:
    """Store that these numbers may have been sent; where the database stands behind that, and the position to gate.

    None when it could not be stored for now.
    """
    # What arrived so far goes with the intent, so that never more than one window is in doubt.
    arrived = EmissionNumber(first - 1)
    intent = yield RecordIntent(sender.lane, claim.epoch, claim.incarnation, arrived, last)
    if isinstance(intent, Refused):
        return End.SUPERSEDED
    if not isinstance(intent, Done):
        yield Pause("the intent is not stored")
        return None
    if standing.lineage.current.durability is Durability.EXPOSED:
        # The intent is younger than what was read. It needs no gate only if the epoch is exposed behind it, too.
        again = yield ReadLane(sender.lane, None, 0)
        if not isinstance(again, LaneRead):
            yield Pause("the database does not answer")
            return None
        if not _still_ours(sender, claim, again):
            return End.SUPERSEDED
        standing = again.standing
    return standing, intent.position


def _note_late(sender: Sender, claim: Claim, resume: Resume, read: LaneRead) -> Story[None]:
    """Note what the receiver has and the database does not know yet: an earlier note may have been lost."""
    last = EmissionNumber(resume.next_number - 1)
    if read.record.acknowledged < last:
        yield RecordAcknowledged(sender.lane, claim.epoch, claim.incarnation, last)


def _still_ours(sender: Sender, claim: Claim, read: LaneRead) -> bool:
    """Whether no newer sender is at work: what the receiver told us is worth nothing otherwise."""
    standing = read.standing
    return claim == (standing.epoch, read.incarnation) and standing.live_at(sender.site)


def _find_resume(sender: Sender, claim: Claim, installation: str) -> Story[Resume | End]:
    """Where to go on; waits while a doubt is not settled."""
    welcome: Welcome | None = None
    if sender.receiver.remembers:
        answer = yield ClaimAtReceiver(sender.lane, claim.epoch, claim.incarnation, installation)
        while not isinstance(answer, Welcome):
            if isinstance(answer, OtherInstallation):
                raise of_another_installation(sender.lane, answer)
            if isinstance(answer, Superseded):
                if (yield from _is_replaced(sender, claim, answer)):
                    return End.SUPERSEDED
                yield Pause(NEWER_SENDER, retries=True)
            else:
                yield Pause(_because(NO_WELCOME, answer), retries=True)
            answer = yield ClaimAtReceiver(sender.lane, claim.epoch, claim.incarnation, installation)
        welcome = answer
    listed = False
    while True:
        read = yield ReadLane(sender.lane, None, 0)
        if not isinstance(read, LaneRead):
            yield Pause("the database does not answer")
            continue
        if not _still_ours(sender, claim, read):
            return End.SUPERSEDED
        if welcome is not None:
            receivers.require_own_lineage(sender.lane, read.standing.lineage, welcome)
        resume = receivers.plan_resume(sender.lane, sender.receiver, read.record, welcome, sender.policy)
        record = read.record
        if sender.receiver is ReceiverClass.R3 and record.intended > record.acknowledged and not listed:
            first = EmissionNumber(record.acknowledged + 1)
            done = yield RecordDoubts(sender.lane, claim.epoch, claim.incarnation, first, record.intended)
            if isinstance(done, Refused):
                return End.SUPERSEDED
            if not isinstance(done, Done):
                continue
            listed = True
        if not isinstance(resume, Doubt):
            return resume
        yield Pause(f"messages {resume.first} to {resume.last} are in doubt")


def _is_replaced(sender: Sender, claim: Claim, answer: Superseded) -> Story[bool]:
    """Whether a receiver that says so is right: it has met a newer epoch, or the database a newer sender.

    Who claims a higher start of the epoch that is our own, and is not known here, is not one of us; nor is whoever
    claims an epoch that no site can have reached.
    """
    if answer.epoch > claim.epoch and is_reachable(answer.epoch, claim.epoch):
        return True
    read = yield ReadLane(sender.lane, None, 0)
    return isinstance(read, LaneRead) and not _still_ours(sender, claim, read)


def _because(what: str, answer: object) -> str:
    """With the reason, if one was given; it is somebody else's text."""
    reason = getattr(answer, "reason", "")
    said = printable(" ".join(str(reason).split()))[:_MOST_REASON]
    return f"{what}: {said}" if said else what


def of_another_installation(lane: Lane, answer: OtherInstallation) -> Broken:
    """What is said where a receiver has met another installation."""
    who = (
        f"installation {printable(answer.installation)[:_MOST_REASON]}"
        if answer.installation
        else "an installation without an identity"
    )
    return Broken(
        f"the receiver of {lane.channel} has messages of {who} on partition {lane.partition}, and takes none of ours",
        code="ZT607",
        why="Equal numbers stand for other messages there. Give the channel another name, or let the receiver forget.",
        tries=("zerotail status", f"zerotail emissions list --channel {lane.channel}"),
    )


def _conflict(lane: Lane, number: EmissionNumber) -> Broken:
    return Broken(
        f"the receiver of {lane.channel} has message {number} of partition {lane.partition} with other bytes",
        code="ZT603",
        why="Two histories have reached one receiver.",
        tries=("zerotail journal compare", f"zerotail emissions list --channel {lane.channel}"),
    )
