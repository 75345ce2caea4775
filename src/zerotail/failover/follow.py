"""The follower: keeps the standby's Kafka filled, in journal order, from the replicated database.

It reads the order journal of its own site's standby database and writes the records where the stages of
this site would read them. Its place is the last record of the topic itself, looked up in the journal;
nothing else has to be remembered, and a crash only makes it write a few records again. It stops when the
database is no standby any more.

The records carry the epoch of the segment they stand in. Whatever the standby has replayed is part of every
later history, so nothing it wrote can turn out to be an orphan.
"""

from __future__ import annotations

from zerotail.core.epoch import topic_at
from zerotail.core.identity import Epoch, ProducerNumber, Serial, SiteName
from zerotail.failover.replay import require_rows
from zerotail.flow.stage import Stage
from zerotail.ports import (
    Batch,
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
)


def follow(stage: Stage, site: SiteName, *, limit: int = 100) -> Story[End]:
    """Append what the journal has and the topic lacks, until this site's database is promoted."""
    seen = yield ObserveSite(site)
    if not isinstance(seen, SiteObserved) or seen.standing.timeline is not None:
        return End.NOT_ACTIVE
    topic = topic_at(stage.topic, seen.standing.rejoined.get(site))
    while True:
        end = yield ReadLogEnd(topic, stage.partition)
        if not isinstance(end, LogEnd):
            yield Pause("Kafka does not answer")
            continue
        journal = yield FindPlace(stage.name, stage.partition, end.producer, end.serial, limit)
        if not isinstance(journal, JournalRead):
            yield Pause("the database does not answer")
        elif journal.standing.timeline is not None:
            return End.NOT_ACTIVE
        elif topic != topic_at(stage.topic, journal.standing.rejoined.get(site)):
            return End.SUPERSEDED
        elif not journal.segments:
            yield Pause("the topic holds all of the journal")
        else:
            yield SendRecords(topic, stage.partition, records_behind(journal))


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
        names = [(producer, Serial(first + step)) for producer, first, count in segment.runs for step in range(count)]
        producers += [producer for producer, _ in names[skip:]]
        serials += [serial for _, serial in names[skip:]]
        epochs += [segment.epoch] * (len(names) - skip)
        digests += segment.digests[skip:]
        values += of_segment[skip:]
    return Batch(producers, serials, epochs, digests, values)
