"""Shadow replay: the handler runs at the standby over what the active site has journaled, and must come to the same.

It begins with the state as the database has it at some segment, and goes on from there with everything that comes; or
with nothing at the first segment. After each pass both hash chains were compared segment by segment, and the values of
all state keys that changed; a difference is told with the positions of the segment, or with the key. It means that a
replay at this site would go wrong: other code, another library, a handler that reads a clock. It is better to learn
that on a normal day.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from zerotail.config import Configuration
from zerotail.core.head import Head, first_head
from zerotail.core.identity import Epoch, PartitionNumber, Position, SegmentNumber, SiteName, StageName
from zerotail.errors import Broken
from zerotail.failover.replay import Replay
from zerotail.flow.stage import Stage
from zerotail.operate.pipeline import transforms_of
from zerotail.ports import LoadState, ReadJournal
from zerotail.postgres.connection import Connection
from zerotail.postgres.failover import find_producers
from zerotail.postgres.journal import find_head, load_state, read_state
from zerotail.postgres.reading import Transforms, read_journal
from zerotail.postgres.transaction import Declined, Session

_SEGMENTS_AT_ONCE = 20
_KEYS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Shadowed:
    """How far a shadow has come, and the first difference it met."""

    stage: str
    partition: int
    segments: int
    """Compared since it began."""
    records: int
    keys: int
    """State keys whose values were compared; one that changed in two passes counts twice."""
    segment: SegmentNumber
    position: Position
    """Behind the last record it applied."""
    difference: str | None

    @property
    def equal(self) -> bool:
        """Whether everything so far came out the same."""
        return self.difference is None


@dataclass(slots=True)
class Shadow:
    """The shadow of one partition of a stage. What is read of the database in one call is read in one snapshot."""

    stage: Stage
    transforms: Transforms
    replay: Replay
    segments: int = 0
    records: int = 0
    keys: int = 0
    difference: str | None = field(default=None)

    @classmethod
    def from_now_on(cls, stage: Stage, transforms: Transforms, connection: Connection) -> Self:
        """Begin behind the last segment, with the state that the database has there."""
        head = _head(stage, connection)
        return cls(stage, transforms, Replay(stage, head, read_state(connection, stage.name, stage.partition)))

    @classmethod
    def from_the_beginning(cls, stage: Stage, transforms: Transforms, connection: Connection) -> Self:
        """Begin with nothing, at the first segment."""
        return cls(stage, transforms, Replay(stage, first_head(Epoch(0), find_producers(connection, stage.name))))

    def catch_up(self, connection: Connection) -> Shadowed:
        """Apply what the journal has by now, and compare. Behind a difference it stands still."""
        head = _head(self.stage, connection)
        while self.difference is None and self.replay.head.segment < head.segment:
            self._apply_some(connection)
        if self.difference is None:
            self._compare_state(connection)
        at = self.replay.head
        place = (self.stage.name, int(self.stage.partition))
        return Shadowed(*place, self.segments, self.records, self.keys, at.segment, at.next_position, self.difference)

    def _apply_some(self, connection: Connection) -> None:
        wanted = ReadJournal(self.stage.name, self.stage.partition, self.replay.head.segment, _SEGMENTS_AT_ONCE)
        try:
            read = read_journal(connection, wanted, self.transforms)
        except Broken as broken:
            self.difference = broken.message
            return
        for segment, values in zip(read.segments, read.values, strict=True):
            try:
                self.replay.apply(segment, values)
            except Broken as broken:
                # A chain covers its segment: which of these records it was, it cannot say.
                last = segment.first_position + len(segment.digests) - 1
                self.difference = f"{broken.message}; it holds positions {segment.first_position} to {last}"
                return
            self.segments += 1
            self.records += len(values)

    def _compare_state(self, connection: Connection) -> None:
        """Every key that changed since the last pass, against what the database has at the same segment."""
        changed = sorted(self.replay.changed)
        for first in range(0, len(changed), _KEYS_AT_ONCE):
            keys = changed[first : first + _KEYS_AT_ONCE]
            stored = load_state(connection, LoadState(self.stage.name, self.stage.partition, keys)).values
            for key in keys:
                if stored.get(key) != self.replay.state.get(key):
                    at = self.replay.head
                    self.difference = (
                        f"the replay of {self.stage.name} partition {self.stage.partition} up to segment {at.segment}, "
                        f"position {at.next_position}, gives key {key!r} {_told(self.replay.state.get(key))}; "
                        f"the database has {_told(stored.get(key))}"
                    )
                    return
        self.keys += len(changed)
        self.replay.changed.clear()


def _head(stage: Stage, connection: Connection) -> Head:
    head = find_head(connection, stage.name, stage.partition)
    if head is None:
        raise Declined(f"stage {stage.name} has no partition {stage.partition} here")
    return head


def _told(value: bytes | None) -> str:
    return "none" if value is None else repr(value[:60])


class Shadows:
    """The shadows of a site's partitions, kept from pass to pass."""

    def __init__(self, configuration: Configuration, site: SiteName) -> None:
        self._database = Session(configuration.sites[site].database.dsn.reveal(), "zerotail shadow")
        self._transforms = transforms_of(configuration)
        self._kept: dict[tuple[StageName, PartitionNumber], Shadow] = {}

    def catch_up(self, stage: Stage) -> Shadowed | None:
        """One pass over a partition; None when the database does not answer."""
        place = stage.name, stage.partition

        def work(connection: Connection) -> Shadowed:
            if place not in self._kept:
                self._kept[place] = Shadow.from_now_on(stage, self._transforms, connection)
            return self._kept[place].catch_up(connection)

        shadowed = self._database.read(work)
        return shadowed if isinstance(shadowed, Shadowed) else None

    def close(self) -> None:
        """Give the session back."""
        self._database.close()
