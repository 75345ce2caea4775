"""The judge of a drill: the receiver's record and the survivor's database, and the checker over the whole history.

lost         acknowledged instructions that have no row, rows that were not applied, messages that did not arrive
duplicated   messages that were accepted twice, or once more with other bytes, and were not listed as doubts
reordered    messages that were accepted behind a later number, and were not listed as doubts
in doubt     numbers that were listed because a receiver without memory may or may not have got them

Two judges: these counts, and the rules of `docs/verdicts.md`. Neither calls the other, and either can fail a drill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zerotail.core.identity import ChannelName
from zerotail.core.verdict import Outcome, Verdict
from zerotail.deadline import Deadline
from zerotail.drill.business import identifier
from zerotail.lab.receiver.protocol import Attempt, MessageAttempt
from zerotail.lab.receiver.protocol import Verdict as Answer
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.owed import observe_drained, read_backlogs

_PATIENCE_SECONDS = 60.0
_KNOWN = """
select count(distinct id) from zerotail.instruction where id = any(%s)
"""
_LISTED = b"select distinct partition, number from zerotail.doubt where channel = %s"
_AT_ONCE = 50_000
Place = tuple[int, int]
"""Partition and number of a message."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the judge found."""

    submitted: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    in_doubt: int
    evidence: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """How much is not as it should be."""
        return self.lost + self.duplicated + self.reordered


def judge(database: str, acknowledged: int, channel: ChannelName, attempts: Sequence[Attempt]) -> Counts:
    """Count what is wrong; the flow must be drained."""
    with session(database, Deadline.after(_PATIENCE_SECONDS)) as connection:
        missing_rows = acknowledged - _known(connection, acknowledged)
        not_applied = observe_drained(connection).instructions
        journaled = {int(one.partition): int(one.journaled) for one in read_backlogs(connection, channel)}
        listed: set[Place] = set(connection.execute(_LISTED, (channel,)).fetchall())
    accepted = [
        one
        for one in attempts
        if isinstance(one, MessageAttempt) and one.channel == channel and one.verdict is Answer.ACCEPTED
    ]
    arrived, again, late = count_arrivals(accepted, listed)
    owed = {(partition, number) for partition, last in journaled.items() for number in range(1, last + 1)}
    missing = owed - arrived - listed
    strange = arrived - owed
    different = sum(isinstance(one, MessageAttempt) and one.same_bytes is False for one in attempts)
    return Counts(
        submitted=acknowledged,
        received=len(accepted),
        lost=missing_rows + not_applied + len(missing),
        duplicated=again + len(strange) + different,
        reordered=late,
        in_doubt=len(listed),
        evidence=(
            f"{missing_rows} acknowledged instructions have no row, {not_applied} rows are not applied",
            f"{len(owed)} messages are journaled, {len(arrived)} different ones arrived",
            f"{again} were accepted twice, {len(strange)} arrived that are not journaled, {different} with other bytes",
        ),
    )


def conclude(counts: Counts | None, checked: Verdict | None, findings: Sequence[str], open_ends: Sequence[str]) -> str:
    """The verdict: failed when one judge found something, undecided when too little was proved."""
    broken = findings or (counts is not None and counts.wrong) or (checked is not None and checked.violations)
    if broken:
        return Outcome.FAILED.value
    if counts is None or checked is None or open_ends or checked.doubts:
        return Outcome.UNDECIDED.value
    return Outcome.PASSED.value


def count_arrivals(accepted: Sequence[MessageAttempt], listed: set[Place]) -> tuple[set[Place], int, int]:
    """What arrived, what came again and what came late; listed doubts may do both."""
    arrived: set[Place] = set()
    highest: dict[int, int] = {}
    again = late = 0
    for one in accepted:
        place = (one.partition, one.number)
        if place not in listed:
            again += place in arrived
            late += one.number < highest.get(one.partition, 0)
        arrived.add(place)
        highest[one.partition] = max(highest.get(one.partition, 0), one.number)
    return arrived, again, late


def _known(connection: Connection, acknowledged: int) -> int:
    found = 0
    for first in range(1, acknowledged + 1, _AT_ONCE):
        names = [identifier(number) for number in range(first, min(first + _AT_ONCE, acknowledged + 1))]
        found += int(one_row(connection, _KNOWN, (names,))[0])
    return found
