"""The follower: keeps the standby's Kafka filled, in journal order, from the replicated database.

It reads the order journal of its own site's standby database and writes the records where the stages of
this site would read them. Its place is the last record of the topic itself, looked up in the journal;
nothing else has to be remembered, and a crash only makes it write a few records again. It stops when the
database is no standby any more.

The records carry the epoch of the segment they stand in. Whatever the standby has replayed is part of every
later history, so nothing it wrote can turn out to be an orphan.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.core.epoch import topic_at
from zerotail.core.identity import Epoch, ProducerNumber, Serial, SiteName, TopicName
from zerotail.core.installation import Installation
from zerotail.failover.replay import require_rows
from zerotail.flow.stage import Stage
from zerotail.ports import (
    Batch,
    Done,
    End,
    FindPlace,
    JournalRead,
    LogEnd,
    ObserveSite,
    Pause,
    ReadLogEnd,
    SendRecords,
    SiteObserved,
    Story,
    TooLarge,
)

SEGMENTS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Followed:
    """What one pass of the follower did."""

    appended: int = 0
    missing: int | None = None
    """Records of the journal that the topic still lacks; None when nobody could tell."""
    missing_since: int | None = None
    """When the oldest of them was journaled, in microseconds; None when nothing is missing, or nobody could tell."""
    waits_for: str = ""


def follow(stage: Stage, site: SiteName, *, limit: int = SEGMENTS_AT_ONCE) -> Story[End]:
    """Append what the journal has and the topic lacks, until this site's database is promoted."""
    while True:
        followed = yield from catch_up(stage, site, limit=limit)
        if isinstance(followed, End):
            return followed
        yield Pause(followed.waits_for or "the topic holds all of the journal")


def catch_up(stage: Stage, site: SiteName, *, limit: int = SEGMENTS_AT_ONCE) -> Story[Followed | End]:
    """One pass at a standby; its end when the database is none any more."""
    seen = yield ObserveSite(site)
    if not isinstance(seen, SiteObserved) or seen.standing.timeline is not None:
        return End.NOT_ACTIVE
    topic = topic_at(stage.topic, seen.standing.rejoined.get(site))
    return (yield from append_missing(stage, topic, seen.standing.installation, limit=limit))


def append_missing(
    stage: Stage, topic: TopicName, installation: Installation, *, limit: int = SEGMENTS_AT_ONCE
) -> Story[Followed]:
    """Append what the journal has behind the last record of the topic, until nothing is missing."""
    end = yield ReadLogEnd(topic, stage.partition, installation)
    if not isinstance(end, LogEnd):
        return Followed(waits_for="Kafka does not answer")
    return (yield from append_behind(stage, topic, end, limit=limit))


def append_behind(
    stage: Stage, topic: TopicName, end: LogEnd, *, limit: int = SEGMENTS_AT_ONCE, at_most: int | None = None
) -> Story[Followed]:
    """The same for a topic whose end is known; nothing at all when more than `at_most` records are missing."""
    producer, serial, appended = end.producer, end.serial, 0
    while True:
        journal = yield FindPlace(stage.name, stage.partition, producer, serial, limit)
        if not isinstance(journal, JournalRead):
            return Followed(appended, waits_for="the database does not answer")
        if not journal.segments:
            return Followed(appended, 0)
        missing, since = journal.head.next_position - journal.first_position, journal.segments[0].decided_at
        if at_most is not None and missing > at_most:
            return Followed(appended, missing, since)
        records = records_behind(journal)
        answer = yield SendRecords(topic, stage.partition, records)
        if isinstance(answer, TooLarge):
            large = f"producer {records.producers[answer.place]} serial {records.serials[answer.place]}"
            return Followed(appended, missing, since, f"Kafka does not take {large}: {answer.reason}")
        if not isinstance(answer, Done):
            return Followed(appended, missing, since, "Kafka does not answer")
        producer, serial = records.producers[-1], records.serials[-1]
        appended += len(records.serials)


def records_behind(journal: JournalRead) -> Batch:
    """The records of journal segments from `first_position` on, in order."""
    producers: list[ProducerNumber] = []
    serials: list[Serial] = []
    epochs: list[Epoch] = []
    digests: list[bytes] = []
    values: list[bytes] = []
    for segment, of_segment in zip(journal.segments, journal.values, strict=True):
        require_rows(segment, of_segment)
        skip = max(0, journal.first_position - segment.first_position)
        left = segment.records[skip:]
        producers += [producer for producer, _ in left]
        serials += [serial for _, serial in left]
        epochs += [segment.epoch] * len(left)
        digests += segment.digests[skip:]
        values += of_segment[skip:]
    return Batch(producers, serials, epochs, digests, values, journal.standing.installation.mark)
