"""Doubts: numbers that a receiver without any memory (R3) may or may not have got, and what an operator decides.

1. A sender that starts lists what lies between acknowledged and intended, under its own incarnation, and waits.
2. Only what the newest sender has listed can be settled: that one waits and has sent nothing yet. A number that some
   sender merely intends at this moment is not in doubt.
3. Messages leave in order, so what arrived is a beginning of what was on its way: a number cannot be settled as sent
   when one before it was not.
4. `acknowledged` moves over what was sent. When nothing is left in doubt `intended` falls back to it, and the waiting
   sender goes on behind.
5. Nothing is settled while a sender of before might still send (`core.receiver.LEASE_SECONDS`), unless whoever decides
   has seen that it is gone.
6. Numbers that it then sends again were decided about, all of them: they are not in doubt while they are on their way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, EmissionNumber, Epoch, Incarnation, PartitionNumber, SiteName
from zerotail.core.receiver import SETTLED_AFTER_SECONDS
from zerotail.ports import Done, RecordDoubts, SettleDoubts
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.outbox import change_lane
from zerotail.postgres.position import read_position
from zerotail.postgres.transaction import Declined

SENT, NOT_SENT = "sent", "not sent"
_LISTED = """
select channel, partition, target, number, doubt.epoch, incarnation, settled
  from zerotail.doubt join zerotail.lane using (channel, partition, target, incarnation)
 where number > acknowledged and number <= intended and (%s::text is null or channel = %s)
 order by channel, partition, target, number
"""

_LISTED_FOR = """
select coalesce(extract(epoch from clock_timestamp() - max(listed_at)), 0)
  from zerotail.doubt join zerotail.lane using (channel, partition, target, incarnation)
 where channel = %s and partition = %s and target = %s and number > acknowledged
"""


@dataclass(frozen=True, slots=True)
class OpenDoubt:
    """A number that its sender waits for; `settled` when it was decided while others of the lane were not."""

    channel: ChannelName
    partition: PartitionNumber
    target: PartitionNumber
    number: EmissionNumber
    epoch: Epoch
    incarnation: Incarnation
    settled: str

    @property
    def lane(self) -> Lane:
        """Whose number it is."""
        return Lane(self.channel, self.partition, self.target)


def record_doubts(connection: Connection, effect: RecordDoubts, site: SiteName) -> Done:
    """List the numbers that may or may not have arrived; listing one again changes nothing."""
    change_lane(connection, effect, site, "intended = intended", ())
    connection.execute(
        b"insert into zerotail.doubt (channel, partition, target, number, epoch, incarnation) "
        b"select %s, %s, %s, number, %s, %s from generate_series(%s::bigint, %s::bigint) as number "
        b"on conflict do nothing",
        (*effect.lane, effect.epoch, effect.incarnation, effect.first, effect.last),
    )
    return Done(read_position(connection))


def read_open_doubts(connection: Connection, channel: ChannelName | None = None) -> list[OpenDoubt]:
    """What senders wait for, in order."""
    listed = _read_listed(connection, channel)
    waiting = {doubt.lane for doubt in listed if not doubt.settled}
    return [doubt for doubt in listed if doubt.lane in waiting]


def _read_listed(connection: Connection, channel: ChannelName | None) -> list[OpenDoubt]:
    """What the newest senders have listed and not passed yet, decided about or not."""
    return [OpenDoubt(*row) for row in connection.execute(_LISTED.encode(), (channel, channel)).fetchall()]


def settle_doubts(connection: Connection, effect: SettleDoubts) -> Done:
    """Everything up to `received` has arrived, the rest of the doubts has not."""
    open_now = _lock(connection, effect.lane)
    if not open_now:
        raise Declined("the doubt is not the current sender's")
    numbers = [doubt.number for doubt in open_now]
    _decide(connection, effect.lane, [number for number in numbers if number <= effect.received], SENT, "")
    _decide(connection, effect.lane, [number for number in numbers if number > effect.received], NOT_SENT, "")
    return _go_on(connection, effect.lane)


def settle(
    connection: Connection,
    lane: Lane,
    first: EmissionNumber,
    last: EmissionNumber,
    decision: str,
    operator: str,
    *,
    sender_is_out: bool = False,
) -> Done:
    """Decide on some of the doubts; declined when one of the numbers is not in doubt, or was decided otherwise, or the
    sender before may still send. `sender_is_out`: it was seen to be gone.
    """
    open_now = {doubt.number: doubt.settled for doubt in _lock(connection, lane)}
    if open_now and not sender_is_out and (left := _seconds_of_lease(connection, lane)) > 0:
        raise Declined(f"who sent before they were listed may still send for {left:.1f} s")
    strange = [number for number in range(first, last + 1) if number not in open_now]
    if strange:
        raise Declined(f"message {strange[0]} is not in doubt")
    numbers = [EmissionNumber(number) for number in range(first, last + 1)]
    for number in numbers:
        if open_now[number] not in ("", decision):
            raise Declined(f"message {number} was settled as {open_now[number]} already")
    decided = open_now | dict.fromkeys(numbers, decision)
    not_sent = [number for number, settled in decided.items() if settled == NOT_SENT]
    sent = [number for number, settled in decided.items() if settled == SENT]
    if not_sent and sent and max(sent) > min(not_sent):
        raise Declined(f"messages leave in order: {max(sent)} cannot have been sent when {min(not_sent)} was not")
    _decide(connection, lane, numbers, decision, operator)
    return _go_on(connection, lane)


def _seconds_of_lease(connection: Connection, lane: Lane) -> float:
    """How long whoever was at work before the newest sender listed its doubts may still send, by this database."""
    (seconds,) = one_row(connection, _LISTED_FOR, lane)
    return SETTLED_AFTER_SECONDS - float(seconds)


def _lock(connection: Connection, lane: Lane) -> list[OpenDoubt]:
    """The open doubts of a lane whose record stands still until the end of the transaction."""
    where = "channel = %s and partition = %s and target = %s"
    connection.execute(f"select from zerotail.lane where {where} for update".encode(), lane)
    return [doubt for doubt in read_open_doubts(connection, lane.channel) if doubt.lane == lane]


def _decide(
    connection: Connection, lane: Lane, numbers: Sequence[EmissionNumber], decision: str, operator: str
) -> None:
    connection.execute(
        b"update zerotail.doubt set settled = %s, settled_by = %s, settled_at = clock_timestamp() "
        b"where channel = %s and partition = %s and target = %s and number = any(%s) and settled = ''",
        (decision, operator, *lane, list(numbers)),
    )


def _go_on(connection: Connection, lane: Lane) -> Done:
    """Move the lane's record to where the decisions allow."""
    doubts = [doubt for doubt in _read_listed(connection, lane.channel) if doubt.lane == lane]
    sent = len(list(takewhile(lambda doubt: doubt.settled == SENT, doubts)))
    undecided = any(not doubt.settled for doubt in doubts)
    connection.execute(
        b"update zerotail.lane set acknowledged = acknowledged + %s, "
        b"intended = case when %s then intended else acknowledged + %s end "
        b"where channel = %s and partition = %s and target = %s",
        (sent, undecided, sent, *lane),
    )
    return Done(read_position(connection))
