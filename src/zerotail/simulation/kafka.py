"""A simulated Kafka partition: a list that may repeat, lose its tail, its beginning or everything.

Offsets have gaps where a transaction marker lies. A wiped log is another log: it has another identity, and an
offset of the old one means nothing in it.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from zerotail.core.admission import FOREIGN
from zerotail.core.head import Hint
from zerotail.core.identity import Epoch, Offset, ProducerNumber, Serial
from zerotail.core.installation import NO_MARK, Installation
from zerotail.core.record import digest_of
from zerotail.ports import Batch, LogEnd


class Stored(NamedTuple):
    """A record as it lies in a partition."""

    producer: ProducerNumber
    serial: Serial
    epoch: Epoch
    digest: bytes
    value: bytes
    mark: int = NO_MARK


OURS = Installation(b"east and west 01", accepts_unmarked=False)
THEIRS = Installation(b"a former life 02", accepts_unmarked=False)
_STRANGE = b"[0, 1]"
FOREIGN_RECORD = Stored(FOREIGN, Serial(0), Epoch(0), digest_of(_STRANGE), _STRANGE)
"""A record of somebody who writes to the topic without our header; its digest alone would let it pass."""

MOST_RECORD_BYTES = 1_000_000
"""What Kafka's client takes."""

_OTHER_BYTES = b"[2, 1000]"

_EMPTY = Batch((), (), (), (), ())


class Log:
    """One partition of one topic at one site."""

    __slots__ = ("first", "identity", "lost", "records", "spoils")

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.first = 0
        self.lost = False
        """Whether records were lost from the end, or all of them, at some time: a writer that had looked just before
        goes on behind an end that is not there any more, in front of whoever fills in what is missing.
        """
        self.spoils = False
        """Whether the next record comes to lie here with other bytes than were sent, under the header that it has."""
        self.records: list[Stored | None] = []
        """None is a marker: an offset without a record."""

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.first + len(self.records)

    def append(self, batch: Batch, count: int | None = None) -> None:
        """Store records in order, all of them or the first so many."""
        rows = zip(batch.producers, batch.serials, batch.epochs, batch.digests, batch.values, strict=True)
        stored = [Stored(*row, batch.mark) for row in islice(rows, count)]
        self.records.extend(stored)
        if self.spoils and stored:
            last = len(stored) - 1
            self.records[-1] = Stored(
                batch.producers[last],
                batch.serials[last],
                batch.epochs[last],
                batch.digests[last],
                _OTHER_BYTES,
                batch.mark,
            )
            self.spoils = False

    def append_of_others(self, serials_ahead: int) -> None:
        """What another installation left: under the numbers that come next here, or soon, or came last."""
        last = next((one for one in reversed(self.records) if one is not None and one.producer != FOREIGN), None)
        if last is not None:
            serial = Serial(last.serial + serials_ahead)
            self.records.append(
                last._replace(serial=serial, value=_STRANGE, digest=digest_of(_STRANGE), mark=THEIRS.mark)
            )

    def mark(self) -> None:
        """A transaction marker of somebody else: an offset that no reader sees."""
        self.records.append(None)

    def truncate(self, count: int) -> None:
        """Lose the last records, as after an unclean election."""
        if count:
            del self.records[-count:]
            self.lost = True

    def retain(self, count: int) -> None:
        """Delete the oldest records."""
        count = min(count, len(self.records))
        del self.records[:count]
        self.first += count

    def wipe(self, identity: str) -> None:
        """Lose everything: the topic is made anew."""
        self.lost = self.lost or self.end > 0
        self.identity = identity
        self.first = 0
        self.records = []

    def read(self, hint: Hint | None, limit: int, installation: Installation) -> tuple[Batch, Hint] | None:
        """Records from a hint on; None when the log does not reach to it."""
        offset: int = self.first
        if hint is not None:
            if hint.log != self.identity or not self.first <= hint.offset <= self.end:
                return None
            offset = hint.offset
        start = offset - self.first
        window = self.records[start : start + limit]
        after = Hint(self.identity, Offset(offset + len(window)))
        read = [record for record in window if record is not None]
        if not read:
            return _EMPTY, after
        found = [record if installation.owns(record.mark) else FOREIGN_RECORD for record in read]
        strangers = sum(one is not record for one, record in zip(found, read, strict=True))
        producers, serials, epochs, digests, values, _ = zip(*found, strict=True)
        return Batch(producers, serials, epochs, digests, values, strangers=strangers), after

    def log_end(self, installation: Installation) -> LogEnd:
        """The end of the log and the last record of ours in it."""
        hint = Hint(self.identity, Offset(self.end))
        for record in reversed(self.records):
            if record is not None and record.producer != FOREIGN and installation.owns(record.mark):
                return LogEnd(hint, record.producer, record.serial)
        return LogEnd(hint, ProducerNumber(0), Serial(0))
