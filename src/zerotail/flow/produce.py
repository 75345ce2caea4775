"""A producer: sends its rows to the shared partition in serial order, from wherever the consumer stands.

Its place is not remembered anywhere. The truth is the consumer's vector: a producer that starts sends from
vector + 1, one that is asked to send again does the same, and one whose records do not arrive (Kafka lost
the very tail, so that no gap ever shows) sees the vector stand still and does it, too. Sending twice is
harmless.

The rows are instructions, or the outbox of an upstream stage. The latter go to Kafka only behind the gate,
like any other emission; they count as acknowledged when the next stage's vector has passed them, so that
the topic between the two may be lost as well.

A record carries the epoch of the snapshot in which its row was read. If that row does not survive, the cut
of the next epoch says so and the record is an orphan.
"""

from __future__ import annotations

from zerotail.core.epoch import topic_at
from zerotail.core.identity import Serial, SiteName
from zerotail.core.receiver import OF_THE_RECEIVER
from zerotail.core.record import digest_of
from zerotail.flow.gate import pass_gate
from zerotail.ports import Batch, Done, End, Fed, Feed, Pause, ReadFeed, SendRecords, Story, TooLarge

TAKES_NO_SUCH_SIZE = f"{OF_THE_RECEIVER}takes no message of this size"
_LONGEST_WAIT = 64
STANDING_READS = 6
"""So many fruitless looks at a standing vector make a producer send again."""


def produce(feed: Feed, site: SiteName, *, limit: int = 500, patience: int | None = None) -> Story[End]:
    """Send the rows of a feed until this site is not the active one any more.

    `patience` is how many fruitless looks make it send again the first time; each time that does not help, it waits
    twice as long.
    """
    patience = STANDING_READS if patience is None else patience
    sent: Serial | None = None
    served = 0
    standing_reads, waits = 0, patience
    vector = Serial(0)
    while True:
        fed = yield ReadFeed(feed, sent, limit)
        if not isinstance(fed, Fed):
            yield Pause("the database does not answer")
            continue
        if not fed.standing.live_at(site):
            return End.NOT_ACTIVE
        # Where an operator has to decide first, sending again and again would only fill Kafka.
        standing_reads = 0 if fed.stopped or fed.vector != vector else standing_reads + 1
        waits = patience if fed.vector != vector else waits
        vector = fed.vector
        if sent is None:
            sent = Serial(fed.first - 1)
            served = fed.request
        behind = fed.vector < sent
        if fed.request > served or sent < fed.vector or (behind and standing_reads >= waits):
            waits = min(2 * waits, _LONGEST_WAIT * patience) if standing_reads >= waits else waits
            served, standing_reads, sent = fed.request, 0, fed.vector
            continue
        if not fed.values:
            yield Pause("no rows to send")
            continue
        if feed.lane is not None and (yield from pass_gate(fed.standing, fed.position)) is None:
            yield Pause("the gate is closed")
            continue
        topic = topic_at(feed.topic, fed.standing.rejoined.get(site))
        answer = yield SendRecords(topic, feed.partition, records_of(feed, fed))
        if isinstance(answer, Done):
            sent = Serial(fed.first + len(fed.values) - 1)
        elif isinstance(answer, TooLarge):
            # What is in front of it is in the log. It waits until the topic takes more, and everything behind it, too.
            large = Serial(fed.first + answer.place)
            sent = Serial(large - 1)
            yield Pause(f"{TAKES_NO_SUCH_SIZE}: number {large} for {topic}: {answer.reason}", retries=True)
        else:
            # It may be in the log or not: the same rows again, a repeat is dropped by its serial.
            yield Pause("Kafka does not answer")


def records_of(feed: Feed, fed: Fed) -> Batch:
    """Rows as records of the epoch in which they were read."""
    count = len(fed.values)
    return Batch(
        [feed.producer] * count,
        [Serial(serial) for serial in range(fed.first, fed.first + count)],
        [fed.standing.epoch] * count,
        [digest_of(value) for value in fed.values],
        fed.values,
        fed.standing.installation.mark,
    )
