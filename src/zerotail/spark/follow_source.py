"""`zerotail-follow`: how far the order journal of a standby has come, as a stream.

    spark.dataSource.register(FollowSource)
    spark.readStream.format("zerotail-follow").options(dsn=…, stages="settle").load()

A row says that the journal of a stage's partition has grown, and to which segment. Whoever follows looks up by itself
where it stands, so a row that is lost or comes twice does no harm; every so often all partitions come again, which
keeps workers and their connections alive where nothing happens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from zerotail.errors import Unavailable
from zerotail.postgres.extent import read_extents
from zerotail.postgres.transaction import Session

SCHEMA = "stage string, partition int, segment bigint"
_ARROW = pa.schema([("stage", pa.string()), ("partition", pa.int32()), ("segment", pa.int64())])
_TURN = "turn"
_TURN_SECONDS = 20
"""Spark ends a Python worker that was idle for a minute."""


class FollowSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "zerotail-follow"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return FollowReader(self.options)


class Extent(InputPartition):
    """One partition of a stage, and its last segment."""

    def __init__(self, stage: str, partition: int, segment: int) -> None:
        super().__init__(None)
        self.stage = stage
        self.partition = partition
        self.segment = segment


class FollowReader(DataSourceStreamReader):
    """Looks at the heads in the driver; the executors have nothing to read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._dsn = options["dsn"]
        self._stages = options["stages"].split(",")
        self._session: Session | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        if self._session is None:
            self._session = Session(self._dsn, "zerotail follower")
        found = self._session.read(lambda connection: read_extents(connection, self._stages))
        if not isinstance(found, dict):
            raise Unavailable("the database does not answer", code="ZT301")
        seen = {f"{stage}/{partition}": int(segment) for (stage, partition), segment in found.items()}
        return {**seen, _TURN: int(time.time()) // _TURN_SECONDS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        turned = start.get(_TURN) != end[_TURN]
        return [
            Extent(*_stage_and_partition(key), segment)
            for key, segment in end.items()
            if key != _TURN and (turned or segment != start.get(key))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Extent)  # noqa: S101 - planned above
        row = (partition.stage, partition.partition, partition.segment)
        yield pa.RecordBatch.from_pylist([dict(zip(_ARROW.names, row, strict=True))], _ARROW)

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()


def _stage_and_partition(key: str) -> tuple[str, int]:
    stage, _, partition = key.rpartition("/")
    return stage, int(partition)
