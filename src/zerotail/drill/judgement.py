"""The judge of a drill: the receiver's record and the survivor's database, against what was acknowledged.

lost         acknowledged instructions that have no row, rows that were not applied, messages that did not arrive
duplicated   messages that were accepted twice, or once more with other bytes
reordered    messages that were accepted behind a later number
in doubt     numbers that a receiver without memory may or may not have got
"""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.deadline import Deadline
from zerotail.drill.business import identifier
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.doubt import read_open_doubts
from zerotail.postgres.owed import observe_drained, read_backlogs

_PATIENCE_SECONDS = 60.0
_KNOWN = """
select count(distinct id) from zerotail.instruction where id = any(%s)
"""
_AT_ONCE = 50_000


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


def judge(database: str, acknowledged: int, channel: str, totals: list[PartitionTotals]) -> Counts:
    """Count what is wrong; the flow must be drained."""
    with session(database, Deadline.after(_PATIENCE_SECONDS)) as connection:
        missing_rows = acknowledged - _known(connection, acknowledged)
        not_applied = observe_drained(connection).instructions
        journaled = {
            int(one.partition): int(one.journaled) for one in read_backlogs(connection) if one.channel == channel
        }
        doubts = len(read_open_doubts(connection))
    arrived = {one.partition: one.distinct for one in totals}
    not_arrived = sum(max(0, number - arrived.get(partition, 0)) for partition, number in journaled.items())
    strange = sum(max(0, arrived[partition] - journaled.get(partition, 0)) for partition in arrived)
    gaps = sum(one.missing for one in totals)
    twice = sum(one.accepted - one.distinct for one in totals) + sum(one.different_bytes for one in totals)
    return Counts(
        submitted=acknowledged,
        received=sum(one.accepted for one in totals),
        lost=missing_rows + not_applied + max(not_arrived, gaps),
        duplicated=twice + strange,
        reordered=sum(one.out_of_order for one in totals),
        in_doubt=doubts,
        evidence=(
            f"{missing_rows} acknowledged instructions have no row, {not_applied} rows are not applied",
            f"{sum(journaled.values())} messages are journaled, {sum(arrived.values())} different ones arrived",
            f"{twice} were accepted twice, {strange} arrived that are not journaled",
        ),
    )


def _known(connection: Connection, acknowledged: int) -> int:
    found = 0
    for first in range(1, acknowledged + 1, _AT_ONCE):
        names = [identifier(number) for number in range(first, min(first + _AT_ONCE, acknowledged + 1))]
        found += int(one_row(connection, _KNOWN, (names,))[0])
    return found
