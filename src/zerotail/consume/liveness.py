"""Is a consumer group alive, and does it get anywhere? Judged by the trend of its positions; nothing has to be tuned.

A group can fail in two ways. Its members die: heartbeats end, Kafka notices and hands their partitions to others, if
there are any. Or they live and do not get on: heartbeats go on, Kafka sees nothing wrong, and nothing is worked on.
Only the positions show the second, so positions are what counts here, and heartbeats say which of the two it is.

    idle         everything is worked on, and nothing new comes
    running      positions move, and what is left does not grow
    slow         positions move, and what is left grows all the same
    stalled      members are there, something is left, no position moves
    stopped      something is left, and nobody is there to work on it
    rebalancing  partitions are being handed out

Positions move in jumps, because clients store them from time to time. What is left is therefore compared at the jumps,
and it grows only if it grows by more than comes in between two looks: a smaller difference is the moment of the look.
All rules are pure; the observation is `zerotail.kafka.group`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from zerotail.consume.places import Partition


class Liveness(Enum):
    """How a partition, or a group, is doing; the worst of its partitions is the group's."""

    IDLE = "idle"
    RUNNING = "running"
    SLOW = "slow"
    REBALANCING = "rebalancing"
    STALLED = "stalled"
    STOPPED = "stopped"


class Cause(Enum):
    """Which of the two ways to fail."""

    NONE = ""
    DEAD = "dead member"
    NO_PROGRESS = "alive without progress"


_WORSE = list(Liveness)


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """One partition at one moment."""

    partition: Partition
    position: int
    """The next offset to be worked on; the beginning of the log when none was ever stored."""
    end: int
    member: str
    """Who has it; empty: nobody."""

    @property
    def lag(self) -> int:
        """What is left."""
        return max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class Look:
    """A group at one moment."""

    at_seconds: float
    is_rebalancing: bool
    members: tuple[str, ...]
    partitions: tuple[PartitionSeen, ...]


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """What became of one partition while it was watched."""

    partition: Partition
    liveness: Liveness
    lag: int
    moved: int
    arrived: int
    member: str


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """How a group is doing, and why."""

    group: str
    liveness: Liveness
    cause: Cause
    why: str
    members: int
    lag: int
    per_second: float
    """How many records are worked on."""
    watched_seconds: float
    partitions: tuple[PartitionVerdict, ...]

    @property
    def is_well(self) -> bool:
        """Whether nobody has to do anything."""
        return self.liveness in (Liveness.IDLE, Liveness.RUNNING)


def judge(group: str, looks: Sequence[Look]) -> GroupVerdict:
    """How a group is doing, by two looks at least, oldest first."""
    if len(looks) < 2:
        raise ValueError("one look shows no trend")
    first, last = looks[0], looks[-1]
    names = [seen.partition for seen in last.partitions]
    verdicts = tuple(_judge_partition([_of(look, name) for look in looks], looks) for name in names)
    liveness = max((one.liveness for one in verdicts), key=_WORSE.index, default=_without_partitions(last))
    if last.is_rebalancing and liveness is not Liveness.IDLE:
        liveness = Liveness.REBALANCING
    lost = sorted(set(first.members) - set(last.members))
    seconds = last.at_seconds - first.at_seconds
    moved = sum(one.moved for one in verdicts)
    cause = _cause(liveness, lost)
    return GroupVerdict(
        group,
        liveness,
        cause,
        _why(liveness, verdicts, last, lost),
        len(last.members),
        sum(one.lag for one in verdicts),
        round(moved / seconds, 1) if seconds > 0 else 0.0,
        round(seconds, 1),
        verdicts,
    )


def _without_partitions(last: Look) -> Liveness:
    return Liveness.IDLE if last.members else Liveness.STOPPED


def _of(look: Look, partition: Partition) -> PartitionSeen | None:
    return next((seen for seen in look.partitions if seen.partition == partition), None)


def _judge_partition(seen: Sequence[PartitionSeen | None], looks: Sequence[Look]) -> PartitionVerdict:
    known = [one for one in seen if one is not None]
    first, last = known[0], known[-1]
    moved, arrived = last.position - first.position, last.end - first.end
    return PartitionVerdict(last.partition, _liveness(known, looks[-1]), last.lag, moved, arrived, last.member)


def _liveness(seen: Sequence[PartitionSeen], last_look: Look) -> Liveness:
    first, last = seen[0], seen[-1]
    if last.lag == 0:
        return Liveness.IDLE if last.position == first.position else Liveness.RUNNING
    if last.position != first.position:
        return Liveness.SLOW if _grows(seen) else Liveness.RUNNING
    if last_look.is_rebalancing:
        return Liveness.REBALANCING
    if last.member:
        # What came during the last look cannot have been worked on yet.
        return Liveness.STALLED if first.lag else Liveness.RUNNING
    return Liveness.STOPPED


def _grows(seen: Sequence[PartitionSeen]) -> bool:
    """Whether what is left grows from jump to jump, by more than comes in between two looks."""
    pairs = list(pairwise(seen))
    left_at_jumps = [after.lag for before, after in pairs if after.position != before.position]
    between_looks = max((after.end - before.end for before, after in pairs), default=0)
    return left_at_jumps[-1] - left_at_jumps[0] > between_looks


def _cause(liveness: Liveness, lost: Sequence[str]) -> Cause:
    match liveness:
        case Liveness.STOPPED:
            return Cause.DEAD
        case Liveness.STALLED:
            return Cause.NO_PROGRESS
        case Liveness.REBALANCING:
            return Cause.DEAD if lost else Cause.NONE
        case _:
            return Cause.NONE


def _why(liveness: Liveness, verdicts: Sequence[PartitionVerdict], last: Look, lost: Sequence[str]) -> str:
    """A sentence with the facts."""
    left = sum(one.lag for one in verdicts)
    these = [one for one in verdicts if one.liveness is liveness]
    named = ", ".join(str(one.partition) for one in these[:5]) + (", …" if len(these) > 5 else "")
    match liveness:
        case Liveness.IDLE:
            return "everything is worked on, and nothing new comes."
        case Liveness.RUNNING:
            return f"positions move, and the {left} records that are left do not grow more."
        case Liveness.SLOW:
            return f"positions move, and what is left grows all the same ({left} records now): {named}."
        case Liveness.STALLED:
            owners = ", ".join(sorted({one.member for one in these}))
            return (
                f"{owners} sends heartbeats and does not get on: {sum(one.lag for one in these)} records are left "
                f"in {named}, and no position moved."
            )
        case Liveness.STOPPED:
            who = "nobody is in the group" if not last.members else "nobody has these partitions"
            return f"{who}, and {left} records are left: {named or 'no partition was ever worked on'}."
        case Liveness.REBALANCING:
            after = f", after {', '.join(lost)} was lost" if lost else ""
            return f"partitions are being handed out{after}; {left} records are left."
