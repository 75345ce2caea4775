"""`zerotail-instructions`: a producer's rows as a stream, in serial order, never past a gap.

    spark.dataSource.register(InstructionSource)
    spark.readStream.format("zerotail-instructions") \\
        .options(dsn=…, producer="1", consumer="settle", partitions="0,1").load()

An offset says, per partition, which serials the last batch covered: `first` up to but without `next`. Usually a batch
goes on where the one before ended. When the consumer asks for records again, or its vector stands still behind what
was sent, the next batch goes back to the vector: that is a new `first`, smaller than the old `next`. Spark itself
only compares offsets for equality, so going back is as good as going on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName, TopicName
from zerotail.errors import Unavailable
from zerotail.flow.produce import STANDING_READS
from zerotail.ports import Fed, Feed, ReadFeed
from zerotail.postgres.feed import last_dense_serial, read_feed
from zerotail.postgres.feed_arrow import read_rows
from zerotail.postgres.transaction import Session

SCHEMA = "partition int, serial bigint, epoch bigint, value binary"


class InstructionSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "zerotail-instructions"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return InstructionReader(self.options)


class SerialRange(InputPartition):
    """What one task reads: serials from `first` up to but without `next_serial`."""

    def __init__(self, partition: int, first: int, next_serial: int) -> None:
        super().__init__(None)
        self.partition = partition
        self.first = first
        self.next_serial = next_serial


class InstructionReader(DataSourceStreamReader):
    """Plans batches in the driver, reads them in the executors."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._dsn = options["dsn"]
        self._producer = ProducerNumber(int(options["producer"]))
        self._consumer = StageName(options["consumer"])
        self._partitions = [PartitionNumber(int(part)) for part in options["partitions"].split(",")]
        self._limit = int(options.get("limit", "50000"))
        self._session: Session | None = None
        self._served: dict[int, int] = {}
        self._vectors: dict[int, tuple[int, int]] = {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._limit)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        vectors = {partition: self._look(partition).vector for partition in self._partitions}
        return {str(partition): {"first": vector + 1, "next": vector + 1} for partition, vector in vectors.items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        return {str(part): self._plan(part, start[str(part)]) for part in self._partitions}

    def _plan(self, partition: PartitionNumber, before: dict[str, int]) -> dict[str, int]:
        fed = self._look(partition)
        first = before["next"]
        vector, stood = self._vectors.get(partition, (-1, 0))
        stood = stood + 1 if fed.vector == vector else 0
        served = self._served.setdefault(partition, fed.request)
        stands = fed.vector + 1 < first and stood >= STANDING_READS
        if fed.request > served or fed.vector >= first or stands:
            first, stood = fed.vector + 1, 0
            self._served[partition] = fed.request
        self._vectors[partition] = (fed.vector, stood)
        last = self._database().read(
            lambda connection: last_dense_serial(connection, self._producer, partition, Serial(first), self._limit)
        )
        if not isinstance(last, int) or last < first:
            return before
        return {"first": first, "next": last + 1}

    def _look(self, partition: PartitionNumber) -> Fed:
        feed = Feed(self._producer, TopicName(""), partition, self._consumer)
        seen = self._database().read(lambda c: read_feed(c, ReadFeed(feed, None, 0)))
        if not isinstance(seen, Fed):
            raise Unavailable("the database does not answer", code="ZT301")
        return seen

    def _database(self) -> Session:
        if self._session is None:
            self._session = Session(self._dsn, "zerotail producer")
        return self._session

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [
            SerialRange(int(part), place["first"], place["next"])
            for part, place in end.items()
            if place != start.get(part) and place["next"] > place["first"]
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SerialRange)  # noqa: S101 - planned above
        yield from read_rows(self._dsn, self._producer, partition.partition, partition.first, partition.next_serial)

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()
