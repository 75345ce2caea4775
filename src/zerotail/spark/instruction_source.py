"""`zerotail-instructions`: rows of producers as a stream, in serial order, never past a gap.

    spark.dataSource.register(InstructionSource)
    spark.readStream.format("zerotail-instructions").options(dsn=…, producers="cards,wires").load()

One task reads one producer's rows of one partition. An offset says, per producer and partition, which serials the last
batch covered: `first` up to but without `next`. Usually a batch goes on where the one before ended. When the consumer
asks for records again, or its vector stands still behind what was sent, the next batch goes back to the vector: that is
a new `first`, smaller than the old `next`. Spark itself only compares offsets for equality, so going back is as good as
going on; `again` counts how often, because what is sent again may be the very batch that was sent last. Producers and
partitions that are added while the stream runs are taken up by its next batch.

`owed` says how many bytes a stage may owe the outside: one that owes more takes nothing, and whoever sent it the same
records again would only fill Kafka.
`numbered` names those whose rows come without a serial: they are numbered here, just before they are read.
With `site`, the stream ends as soon as that site is not the active one any more; with `standby` it also waits until
that site is the active one for the first time, and rehearses meanwhile: a few batches of ranges of `NOBODY`, which have
no rows, so that nothing of the way is gone for the first time when it counts.

A row of which no record can be made stops its producer in that partition: no range reaches it until somebody has
decided about it (`zerotail poison`). Then it has a range of its own, so that whoever sends it asks what was decided.

With `ranges` the stream has one row for each such task, which serials it covers, instead of the instructions: whoever
reads them itself (`read_rows`) spares the way through the JVM. Our own producers do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from zerotail.core.identity import ChannelName, Serial, SiteName
from zerotail.core.installation import NO_MARK
from zerotail.errors import Refused, Unavailable
from zerotail.postgres.feed import FeedPlace, last_dense_serial, look_at_feeds, number_submissions
from zerotail.postgres.feed_arrow import read_rows
from zerotail.postgres.owed import fullest_bytes
from zerotail.postgres.transaction import Session
from zerotail.postgres.way_in import drains, end_drain

SCHEMA = "producer int, partition int, serial bigint, epoch bigint, value binary"
RANGES = "producer int, partition int, first bigint, next_serial bigint, decided boolean, mark bigint"
_RANGE = pa.schema(
    [
        ("producer", pa.int32()),
        ("partition", pa.int32()),
        ("first", pa.int64()),
        ("next_serial", pa.int64()),
        ("decided", pa.bool_()),
        ("mark", pa.int64()),
    ]
)
NOBODY = 0
"""The number of no producer."""
_STANDS_SECONDS = 5.0
_FIRST_REHEARSALS = 8
_REHEARSE_SECONDS = 10.0
_LONGEST_WAIT = 64


class InstructionSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "zerotail-instructions"

    def schema(self) -> str:
        return RANGES if _is_set(self.options, "ranges") else SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return InstructionReader(self.options)


class SerialRange(InputPartition):
    """What one task reads: serials from `first` up to but without `next_serial`."""

    def __init__(
        self, producer: int, partition: int, first: int, next_serial: int, *, decided: bool, mark: int = NO_MARK
    ) -> None:
        super().__init__(None)
        self.producer = producer
        self.partition = partition
        self.first = first
        self.next_serial = next_serial
        self.decided = decided
        """Whether somebody has decided about it at the door."""
        self.mark = mark
        """What its records carry: of the installation whose rows were planned, before they are read."""


class InstructionReader(DataSourceStreamReader):
    """Plans batches in the driver, reads them in the executors."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._dsn = options["dsn"]
        self._site = options.get("site")
        self._producers = _names(options["producers"])
        self._numbered = _names(options.get("numbered", ""))
        self._owed: dict[str, tuple[int, list[ChannelName]]] = json.loads(options.get("owed", "{}"))
        self._ranges = _is_set(options, "ranges")
        self._waiting = _is_set(options, "standby")
        self._limit = int(options.get("limit", "50000"))
        self._stands_seconds = float(options.get("resend_after_seconds", _STANDS_SECONDS))
        self._session: Session | None = None
        self._served: dict[str, int] = {}
        self._moved: dict[str, tuple[int, float, float]] = {}
        self._rehearsed = 0
        self._rehearse_at = 0.0
        self._mark = NO_MARK

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._limit)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        live, places = self._look()
        return {_key(place): _beginning(place) for place in places} if live else {}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        live, places = self._look()
        if not live:
            return self._rehearse(start, len(places))
        planned = dict(start)
        for place in places:
            planned[_key(place)] = self._plan(place, start.get(_key(place), _beginning(place)))
        return planned

    def _rehearse(self, start: dict[str, Any], tasks: int) -> dict[str, Any]:
        """A batch of nobody's, now and then: so many at first that code is compiled, later what keeps workers alive."""
        now = time.monotonic()
        if self._rehearsed >= _FIRST_REHEARSALS and now < self._rehearse_at:
            return start
        self._rehearsed += 1
        self._rehearse_at = now + _REHEARSE_SECONDS
        nothing = {"first": 0, "next": 1, "again": self._rehearsed}
        return {**start, **{f"{NOBODY}/{task}": nothing for task in range(tasks)}}

    def _plan(self, place: FeedPlace, before: dict[str, int]) -> dict[str, int]:
        first, again = before["next"], before["again"]
        served = self._served.setdefault(_key(place), place.request)
        if place.request > served or place.vector >= first or self._stands(place, first):
            first, again = place.vector + 1, again + 1
            self._served[_key(place)] = place.request
        if place.stands is not None and first > place.stands:
            first = int(place.stands)
            before = {"first": first, "next": first, "again": again}
        # Most looks find nothing: they cost no more than the one question that was asked for all places.
        to_number = place.numbered and place.waiting
        if place.last < first and not to_number:
            return before
        producer, partition = place.producer, place.partition
        if to_number:
            self._database().write(lambda c: number_submissions(c, producer, partition, self._limit))
        last = self._database().read(
            lambda connection: last_dense_serial(connection, producer, partition, Serial(first), self._limit)
        )
        if not isinstance(last, int):
            return before
        last = _end_before_the_door(place, first, last)
        if last < first:
            return before
        planned = {"first": first, "next": last + 1, "again": again}
        return {**planned, "decided": 1} if first in place.decided else planned

    def _stands(self, place: FeedPlace, first: int) -> bool:
        """Whether records that were sent have not been taken for a while: Kafka may have lost its very tail."""
        vector, since, patience = self._moved.get(_key(place), (-1, 0.0, self._stands_seconds))
        now = time.monotonic()
        if place.vector + 1 >= first or place.stopped:
            self._moved[_key(place)] = (place.vector, now, self._stands_seconds)
            return False
        if place.vector != vector:
            # Slow is not lost: who has been sent records again keeps the longer patience until all of them are taken.
            self._moved[_key(place)] = (place.vector, now, patience)
            return False
        if now - since < patience:
            return False
        if self._holds_back(place):
            self._moved[_key(place)] = (place.vector, now, patience)
            return False
        # A stage that is not running takes nothing, however often it is sent.
        self._moved[_key(place)] = (place.vector, now, min(2 * patience, _LONGEST_WAIT * self._stands_seconds))
        return True

    def _holds_back(self, place: FeedPlace) -> bool:
        """Whether the consumer takes nothing because it owes too much."""
        if place.consumer not in self._owed:
            return False
        limit, to_itself = self._owed[place.consumer]
        owed = self._database().read(lambda connection: fullest_bytes(connection, place.consumer, to_itself))
        return isinstance(owed, int) and owed >= limit

    def _look(self) -> tuple[bool, list[FeedPlace]]:
        """Whether it may send here by now, and from which places."""
        seen = self._database().read(lambda c: look_at_feeds(c, self._producers, self._numbered))
        if not isinstance(seen, tuple):
            raise Unavailable("the database does not answer", code="ZT301")
        standing, places = seen
        self._mark = standing.installation.mark
        live = self._site is None or standing.live_at(SiteName(self._site))
        if live and drains(standing):
            self._database().write(end_drain)  # rows that come by SQL wait for it, if nobody drains any more
        if not live and not self._waiting:
            raise Refused(f"site {self._site} is not the active one", code="ZT461")
        self._waiting &= not live
        return live, places

    def _database(self) -> Session:
        if self._session is None:
            self._session = Session(self._dsn, "zerotail producer")
        return self._session

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = []
        for key, place in end.items():
            if place != start.get(key) and place["next"] > place["first"]:
                producer, partition = key.split("/")
                decided = "decided" in place
                wanted = int(producer), int(partition), place["first"], place["next"]
                ranges.append(SerialRange(*wanted, decided=decided, mark=self._mark))
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SerialRange)  # noqa: S101 - planned above
        wanted = (partition.producer, partition.partition, partition.first, partition.next_serial)
        if self._ranges:
            row = dict(zip(_RANGE.names, (*wanted, partition.decided, partition.mark), strict=True))
            yield pa.RecordBatch.from_pylist([row], _RANGE)
        else:
            yield from read_rows(self._dsn, *wanted)

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def _beginning(place: FeedPlace) -> dict[str, int]:
    return {"first": place.vector + 1, "next": place.vector + 1, "again": 0}


def _end_before_the_door(place: FeedPlace, first: int, last: int) -> int:
    """The last serial of a range that ends in front of a row that stands, and has a decided one for itself."""
    if place.stands is not None:
        last = min(last, place.stands - 1)
    if first in place.decided:
        return min(last, first)
    return min([last, *(serial - 1 for serial in place.decided if serial > first)])


def _key(place: FeedPlace) -> str:
    return f"{place.producer}/{place.partition}"
