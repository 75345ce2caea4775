"""The bad day: what a takeover, a handover, a rejoin and a follower ask of both sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zerotail.core.completeness import Surplus
from zerotail.core.epoch import Durability, Phase
from zerotail.core.head import Head, Hint, Segment
from zerotail.core.identity import (
    Epoch,
    Lsn,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
)
from zerotail.ports.story import Effect, Result, Standing


class ObserveSite(Effect, frozen=True):
    """Look at a site's database."""

    site: SiteName


class SiteObserved(Result, frozen=True):
    """Where the database stands, how much of the log it holds, and how a standby gets the rest."""

    standing: Standing
    flushed: Lsn
    receives: bool = True
    """Of a standby: whether it receives the log now."""
    slot: str = ""
    """Of a standby: the slot at its primary that keeps the log for it; empty where there is none."""
    slots: frozenset[str] = frozenset()
    """Of a primary: those slots that still keep what they were made for."""
    numbers: Mapping[SiteName, int] = {}
    """Which sites the database knows, with the numbers that their epochs have."""

    def can_follow(self, primary: SiteObserved) -> bool:
        """False when nobody keeps the log that this standby needs: by itself it will not catch up."""
        return self.receives or not self.slot or self.slot in primary.slots


class CompareCopies(Effect, frozen=True):
    """Look what the copy at a site holds and the history of the active one lacks."""

    site: SiteName
    active: SiteName


class CopiesCompared(Result, frozen=True):
    """What was found; see `core.completeness`."""

    surplus: Surplus


class FenceSite(Effect, frozen=True):
    """Stop a site from outside: power, routes, credentials."""

    site: SiteName


class Promote(Effect, frozen=True):
    """Make a site's standby database a primary; harmless when it is one. Refused when it holds less of the log than the
    one that was looked at: then it is another one, under the same address.
    """

    site: SiteName
    at_least: Lsn = Lsn(0)


class StopWaiting(Effect, frozen=True):
    """Let commits of a site's database return without a standby; those that wait now return and become
    visible.
    """

    site: SiteName


class OpenEpoch(Effect, frozen=True):
    """Write the new epoch with the cuts, if the current one is still `expected`, and the database on the `timeline` on
    which the plan found it (None: it was a standby then); hand every head over to it.
    """

    site: SiteName
    expected: Epoch
    epoch: Epoch
    durability: Durability
    cause: str
    operator: str
    timeline: Timeline | None = None


class ChangeEpoch(Effect, frozen=True):
    """Change phase or durability of the current epoch, if it is still `epoch`."""

    site: SiteName
    epoch: Epoch
    phase: Phase | None = None
    durability: Durability | None = None


class StoreStart(Effect, frozen=True):
    """Say where a stage begins to read in this epoch."""

    site: SiteName
    stage: StageName
    partition: PartitionNumber
    epoch: Epoch
    hint: Hint


class RestoreTopic(Effect, frozen=True):
    """Complete a stage's topic at a site and prove it by the journal; with `rebuild`, through the handler as well."""

    site: SiteName
    stage: StageName
    partition: PartitionNumber
    strategy: str
    rebuild: bool


class TopicRestored(Result, frozen=True):
    """The topic holds all of the journal, and it was proven."""

    written: int
    records: int
    """That were read in order."""


class ReadJournal(Effect, frozen=True):
    """Read segments of the order journal with the values of their records, behind a segment."""

    stage: StageName
    partition: PartitionNumber
    after: SegmentNumber
    limit: int


class FindPlace(Effect, frozen=True):
    """Read the journal behind the record (producer, serial); from its beginning when serial is 0."""

    stage: StageName
    partition: PartitionNumber
    producer: ProducerNumber
    serial: Serial
    limit: int


class JournalRead(Result, frozen=True):
    """Segments with their records' values; `first_position` is that of the first value."""

    standing: Standing
    head: Head
    segments: Sequence[Segment]
    values: Sequence[Sequence[bytes]]
    first_position: Position


class RecordStep(Effect, frozen=True):
    """Remember, at a site, that a step of a takeover is done: in a file until the epoch exists, then in the
    database.
    """

    site: SiteName
    epoch: Epoch
    step: int


class ObserveDrained(Effect, frozen=True):
    """Is everything submitted also applied, and everything owed acknowledged?"""

    site: SiteName


class Drained(Result, frozen=True):
    """What is left; `doubts` are R3 numbers that nobody has settled."""

    instructions: int
    emissions: int
    doubts: int


class ShutDown(Effect, frozen=True):
    """Stop a site's primary cleanly: the standby then has everything, its shutdown checkpoint included."""

    site: SiteName


class KeepTail(Effect, frozen=True):
    """Keep what only this site's database has, for audit; `Done.position` says up to where it was kept."""

    site: SiteName
    source: SiteName
    released: bool = False
    """Whether it was behind the gate, so that it may have been sent: said of the tail."""


class CopyDatabase(Effect, frozen=True):
    """Stop a site's database and replace it by a fresh copy of the other one's, as its standby.

    Refused if, once stopped, it is found in another epoch than the expected one (somebody took over there
    meanwhile) or with more in its log than was kept. `replaced` is None when it does not answer at all.
    """

    site: SiteName
    source: SiteName
    replaced: tuple[Epoch, Lsn] | None


class RecordRejoined(Effect, frozen=True):
    """Say, in the active database, that a site came back in this epoch; its topics start anew."""

    site: SiteName
    rejoined: SiteName
    epoch: Epoch
