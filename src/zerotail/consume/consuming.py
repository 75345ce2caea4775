"""A member of a consumer group whose results are exactly once.

    from zerotail.consume import consume

    def book(record, transaction):
        transaction.execute("insert into booking values (%s, %s)", (record.key, record.value))

    consume("kafka:9092", "booking", ["payments"], "dbname=shop", book)

One thread polls and works. A round:

1. a new assignment: claim the place of every partition, and read from there
2. partitions that were held and whose time has come are read again
3. poll
4. partition by partition, one transaction for what came: the work for each record, and the place behind the last

A record whose work fails holds its partition: what came before it is stored, the partition is paused at the record, and
the poll goes on, so that the member keeps its place in the group and its other partitions go on. It is tried again, a
little later each time, for ever: skipping a record is no decision of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

from zerotail.consume.places import Elsewhere, Failed, Fenced, Lost, Moved, Partition, Place, Places
from zerotail.errors import Refused

T = TypeVar("T")
_FIRST_WAIT_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.2
_WORK_SECONDS = 1.0
"""Of one transaction, give or take a record: slow work must keep neither the poll nor the place waiting."""
MOST_RECORDS = 500
"""Of one poll, and so of one transaction."""


class Record(NamedTuple):
    """A record of a topic."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


Work = Callable[[Record, T], None]


class Member(Protocol):
    """The Kafka side: a member of a group that reads from where it is told."""

    def find_assignment(self) -> frozenset[Partition] | None:
        """The partitions of this member, if they have changed since it was asked last; it reads none of them yet."""

    def find_log(self, topic: str) -> str | None:
        """Which log a topic is: cluster and topic. None while Kafka does not say."""

    def read_from(self, places: Mapping[Partition, int | None]) -> None:
        """Read these partitions, held or not, and no others, from these offsets on; None: from the start chosen."""

    def poll(self, seconds: float, most: int) -> Sequence[Record]:
        """Records that have come; takes part in rebalances meanwhile."""

    def hold(self, partition: Partition, offset: int) -> None:
        """Read nothing more of a partition, and go back to an offset."""

    def go_on(self, partition: Partition) -> None:
        """Read a held partition again."""

    def note(self, partition: Partition, next_offset: int) -> None:
        """Leave a copy of the place with Kafka, for those who watch; nobody reads it back."""

    def close(self) -> None:
        """Leave the group."""


@dataclass(frozen=True, slots=True)
class Held:
    """A partition that waits because the work on a record failed."""

    offset: int
    error: str
    attempts: int
    again_at: float
    """On the monotonic clock."""


class Consuming(Generic[T]):
    """The loop, one round at a time."""

    def __init__(self, member: Member, places: Places[T], group: str, work: Work[T]) -> None:
        self._member = member
        self._places = places
        self._group = group
        self._work = work
        self._claimed: dict[Partition, Place] = {}
        self._unclaimed: frozenset[Partition] = frozenset()
        self.held: dict[Partition, Held] = {}
        """Partitions that wait, and why."""
        self.waits_for = ""
        """Why nothing is stored; empty while the store answers."""
        self.stored = 0
        """Records whose results are stored."""
        self.fenced = 0
        """Batches that somebody else's claim kept out."""

    def round(self) -> None:
        """One round."""
        self._take_up_assignment()  # 1
        now = time.monotonic()
        for partition, held in list(self.held.items()):  # 2
            if held.again_at <= now and partition in self._claimed:
                self.held[partition] = replace(held, again_at=float("inf"))
                self._member.go_on(partition)
        for partition, records in _by_partition(self._member.poll(_POLL_SECONDS, MOST_RECORDS)):  # 3
            place = self._claimed.get(partition)
            if place is not None and self._is_wanted(partition, records[0].offset):
                self._apply(place, [record for record in records if record.offset >= (place.next_offset or 0)])  # 4

    def _is_wanted(self, partition: Partition, offset: int) -> bool:
        """Whether records from an offset on may be worked on: not those that lie behind one that waits."""
        held = self.held.get(partition)
        if held is None or (held.again_at == float("inf") and offset <= held.offset):
            return True
        self._member.hold(partition, held.offset)
        self.held[partition] = replace(held, again_at=time.monotonic())
        return False

    def _take_up_assignment(self) -> None:
        assigned = self._member.find_assignment()
        if assigned is not None:
            self._claimed, self.held, self._unclaimed = {}, {}, assigned
        elif not self._unclaimed:
            return
        claimed = {}
        for partition in sorted(self._unclaimed):
            log = self._member.find_log(partition.topic)
            place = Lost("Kafka does not answer") if log is None else self._places.claim(self._group, partition, log)
            if isinstance(place, Lost):
                self.waits_for = place.reason
                return
            if isinstance(place, Elsewhere):
                raise _elsewhere(self._group, partition, place)
            claimed[partition] = place
        # All or none, and read anew: a claim counts only together with where we read from.
        self.waits_for, self._unclaimed, self._claimed = "", frozenset(), claimed
        self._member.read_from({partition: place.next_offset for partition, place in claimed.items()})

    def _apply(self, place: Place, records: Sequence[Record]) -> None:
        """Store the results of records of one partition, or of those before the first that fails."""
        if not records:
            return
        done = 0  # how many have been worked on, in a transaction that may yet end badly
        enough_at = time.monotonic() + _WORK_SECONDS

        def work(transaction: T) -> int:
            nonlocal done
            for record in records:
                self._work(record, transaction)
                done += 1
                if time.monotonic() > enough_at:
                    break
            return records[done - 1].offset + 1

        answer = self._places.transact(self._group, place, work)
        match answer:
            case Moved():
                self._claimed[place.partition] = answer.place
                self.held.pop(place.partition, None)
                self.stored += done
                next_offset = records[done - 1].offset + 1
                self._member.note(place.partition, next_offset)
                if done < len(records):
                    # Slow work: what is left is read again behind the next poll, which must not wait for it.
                    self._member.hold(place.partition, next_offset)
                    self._member.go_on(place.partition)
            case Fenced():
                # Somebody else has it; we are told by and by, with a new assignment.
                self.fenced += 1
                self._forget(place.partition)
            case Lost():
                self.waits_for = answer.reason
                self._claimed, self._unclaimed = {}, frozenset(self._claimed)
            case Failed():
                done = min(done, len(records) - 1)  # all of them, and the commit failed: the last one is tried alone
                failed = records[done]
                if done:
                    self._apply(place, records[:done])
                if place.partition in self._claimed:
                    self._hold(failed, answer.error)

    def _hold(self, record: Record, error: Exception) -> None:
        before = self.held.get(record.partition)
        attempts = before.attempts + 1 if before is not None and before.offset == record.offset else 1
        wait_seconds = min(_FIRST_WAIT_SECONDS * 2 ** (attempts - 1), _LONGEST_WAIT_SECONDS)
        said = f"{type(error).__name__}: {error}"
        self.held[record.partition] = Held(record.offset, said, attempts, time.monotonic() + wait_seconds)
        self._member.hold(record.partition, record.offset)

    def _forget(self, partition: Partition) -> None:
        place = self._claimed.pop(partition)
        self.held.pop(partition, None)
        self._member.hold(partition, place.next_offset or 0)


def _elsewhere(group: str, partition: Partition, place: Elsewhere) -> Refused:
    of = f"consumer_group = '{group}' and topic = '{partition.topic}' and partition = {partition.number}"
    return Refused(
        f"the place of {group} in {partition} is one of another log, {place.log}: of another cluster, or of a topic "
        "that was made anew.",
        code="ZT921",
        why="The same offset is another record here. Going on would skip records, or work on them twice.",
        tries=(
            f"zerotail mirror offsets MIRROR --group {group}    # where it goes on in a topic that was mirrored here",
            f"update zerotail_place set next_offset = …, log = null where {of}    # the offset in this log",
        ),
    )


def _by_partition(records: Sequence[Record]) -> list[tuple[Partition, list[Record]]]:
    found: dict[Partition, list[Record]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return sorted(found.items())
