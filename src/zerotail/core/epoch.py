"""Epochs: the chapters of the one surviving history, and what each of them kept of the one before.

An epoch row is the first write of a new lineage. It names the site that works, the database timeline on
which it works, whether it may release without the other site (`exposed`), how far its opening has come, and
the **cut**: for every producer and partition the last serial that survived. The rows of one database,
oldest first, are its **lineage**.

1. A record that was sent in an epoch of the lineage counts only up to the cut with which the *next* epoch
   began; what lies beyond was lost, and its serial may mean something else today. It is an orphan (I14).
2. A record of an epoch that is not in the lineage is an orphan too: it belongs to a history that did not
   survive.
3. A site works only while the last epoch of its lineage is its own *and* its database is still on the
   timeline for which that epoch was opened. Between a promotion and the new epoch row nobody writes, or a
   cut would cover rows that came after it (decision 0010).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from zerotail.core.chain import Chain
from zerotail.core.identity import (
    Epoch,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    TopicName,
    epoch_of,
    generation_of,
)

Source = tuple[ProducerNumber, PartitionNumber]
"""A producer and the partition it writes to: what serials are dense in."""


class Durability(Enum):
    """Whether emissions wait for the other site."""

    GATED = "gated"
    EXPOSED = "exposed"


class Phase(Enum):
    """How far an epoch has come."""

    OPENED = "opened"  # the row exists; stages, emitters and producers wait
    LIVE = "live"
    DRAINING = "draining"  # a handover has begun: no new submissions


@dataclass(frozen=True, slots=True)
class HeadCut:
    """Where a stage and partition stood when an epoch was opened; evidence, no decision rests on it."""

    stage: StageName
    partition: PartitionNumber
    segment: SegmentNumber
    next_position: Position
    chain: Chain


@dataclass(frozen=True, slots=True)
class Cut:
    """What an epoch found when it was opened."""

    serials: Mapping[Source, Serial] = field(default_factory=dict)
    heads: tuple[HeadCut, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochRow:
    """One epoch as its database knows it."""

    epoch: Epoch
    site: SiteName
    timeline: Timeline
    durability: Durability
    phase: Phase
    cut: Cut
    cause: str = "start"
    operator: str = ""
    """Which statement of an operator allowed this epoch, if one was needed."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The epochs of one database, oldest first; never empty."""

    rows: tuple[EpochRow, ...]

    @property
    def current(self) -> EpochRow:
        """The epoch in which this database is now."""
        return self.rows[-1]

    def __contains__(self, epoch: Epoch) -> bool:
        return any(row.epoch == epoch for row in self.rows)

    def limits(self, partition: PartitionNumber) -> dict[Epoch, dict[ProducerNumber, Serial] | None]:
        """Per epoch of the lineage the last serial of each producer that counts; None means no limit."""
        limits: dict[Epoch, dict[ProducerNumber, Serial] | None] = {}
        for row, following in zip(self.rows, self.rows[1:], strict=False):
            limits[row.epoch] = {
                producer: serial
                for (producer, of_partition), serial in following.cut.serials.items()
                if of_partition == partition
            }
        limits[self.current.epoch] = None
        return limits

    def opened(self, row: EpochRow) -> Lineage:
        """The lineage with one epoch more."""
        if row.epoch <= self.current.epoch:
            raise ValueError(f"epoch {row.epoch} does not follow epoch {self.current.epoch}")
        return Lineage((*self.rows, row))

    def changed(
        self, *, phase: Phase | None = None, durability: Durability | None = None, operator: str | None = None
    ) -> Lineage:
        """The lineage with its current row changed."""
        row = self.current
        row = replace(
            row,
            phase=phase or row.phase,
            durability=durability or row.durability,
            operator=row.operator if operator is None else operator,
        )
        return Lineage((*self.rows[:-1], row))


def works_at(lineage: Lineage, site: SiteName, timeline: Timeline | None) -> bool:
    """Whether `site`, whose database is a primary on `timeline` (None: a standby), is the one that works
    now.
    """
    row = lineage.current
    return row.site == site and row.timeline == timeline


def live_at(lineage: Lineage, site: SiteName, timeline: Timeline | None) -> bool:
    """Whether stages, emitters and producers of `site` may run: its epoch is its own, and fully opened."""
    return works_at(lineage, site, timeline) and lineage.current.phase is not Phase.OPENED


_JUMP = 1000


def next_epoch(lineage: Lineage, site_number: int, *, some_may_be_lost: bool = False) -> Epoch:
    """The number under which site `site_number` goes on after this lineage; far behind it, where epochs that were
    opened may be missing in it: no number is ever given twice.
    """
    ahead = _JUMP if some_may_be_lost else 1
    return epoch_of(generation_of(lineage.current.epoch) + ahead, site_number)


_MOST_AHEAD = 1 << 20


def is_reachable(epoch: Epoch, known: Epoch) -> bool:
    """Whether a site can have come so far behind an epoch that is known: by a thousand losses that were accepted, and
    not more. Whoever says that it met a newer one is not believed.
    """
    return generation_of(epoch) <= generation_of(known) + _MOST_AHEAD


def topic_at(topic: TopicName, rejoined_in: Epoch | None) -> TopicName:
    """The name of a topic at a site: one that came back takes the epoch into the name, its old log is not
    read again.
    """
    return topic if rejoined_in is None else TopicName(f"{topic}.{rejoined_in}")
