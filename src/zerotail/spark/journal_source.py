"""The order journal as a table: `spark.read.format("zerotail-journal")`.

    spark.dataSource.register(JournalSource)
    spark.read.format("zerotail-journal").option("dsn", …).option("stage", "settle").load()

| option | |
|---|---|
| `dsn` | the database; a standby will do |
| `stage` | whose order |
| `partitions` | such as `0,3`; all of them when not given |
| `values` | `false` leaves the column `value`, the stored row's, out; then no instruction is read |
| `records_per_task` | how many records, about, one Spark partition reads; 200,000 when not given |

A Spark partition is a range of segments of one stage partition. How far each journal reaches is settled when the read
is planned; rows of the journal never change, so the tasks agree without a common snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from zerotail.core.continuity import SegmentRow, Values
from zerotail.core.identity import PartitionNumber, StageName
from zerotail.core.order import Numbers
from zerotail.deadline import Deadline
from zerotail.errors import Broken, Misused, Refused
from zerotail.postgres.connection import Connection, session, snapshot
from zerotail.postgres.reading import find_sources, in_portions, read_values
from zerotail.postgres.segment import SegmentRange, all_rows, plan_ranges

_CONNECT_SECONDS = 30.0
_RECORDS_PER_TASK = 200_000
_OPTIONS = {"dsn", "stage", "partitions", "values", "records_per_task"}
_NAMES = "position long, partition int, producer int, serial long, epoch long, segment long"


class JournalSource(DataSource):
    """Registers under `zerotail-journal`."""

    @classmethod
    def name(cls) -> str:
        """What stands behind `format`."""
        return "zerotail-journal"

    def schema(self) -> str:
        """The columns."""
        return f"{_NAMES}, value binary" if _with_values(self.options) else _NAMES

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """A reader of what the options name."""
        return JournalReader(dict(self.options))


class JournalTask(InputPartition):
    """What one Spark partition reads."""

    def __init__(self, segments: SegmentRange) -> None:
        super().__init__(None)
        self.segments = segments


class JournalReader(DataSourceReader):
    """Plans ranges of segments, and reads each as Arrow batches."""

    def __init__(self, options: Mapping[str, str]) -> None:
        unknown = {name.lower() for name in options} - _OPTIONS - {"path"}
        if unknown:
            raise Misused(
                f"zerotail-journal has no option {', '.join(sorted(unknown))}; it has {', '.join(sorted(_OPTIONS))}."
            )
        self._dsn = _required(options, "dsn")
        self._stage = StageName(_required(options, "stage"))
        self._partitions = _numbers(options.get("partitions"))
        self._values = _with_values(options)
        self._records_per_task = int(options.get("records_per_task", _RECORDS_PER_TASK))

    def partitions(self) -> list[InputPartition]:
        """Ranges of segments, up to where the journal reaches now."""
        with session(self._dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
            ranges = plan_ranges(connection, self._records_per_task, self._stage)
        known = {one.partition for one in ranges}
        if self._partitions is None:
            return [JournalTask(one) for one in ranges]
        missing = self._partitions - known
        if missing:
            raise Refused(
                f"stage {self._stage} has no journal of partition {', '.join(map(str, sorted(missing)))} here"
            )
        return [JournalTask(one) for one in ranges if one.partition in self._partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, in order."""
        task = cast(JournalTask, partition)
        with session(self._dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
            yield from read_batches(connection, task.segments, with_values=self._values)


def read_batches(connection: Connection, segments: SegmentRange, *, with_values: bool) -> Iterator[pa.RecordBatch]:
    """The records of a range of segments, a batch for every few segments."""
    place = (segments.stage, segments.partition)
    rows = all_rows(connection, *place, after=segments.first - 1, until=segments.last)
    sources = find_sources(connection, *place) if with_values else {}
    for portion in in_portions(rows):
        values = read_values(connection, sources, segments.partition, portion) if with_values else None
        for row in portion:
            yield records_of(row, segments.partition, values)


def records_of(row: SegmentRow, partition: PartitionNumber, values: Values | None = None) -> pa.RecordBatch:
    """The records of one segment, in order; `Broken` when the order cannot be decoded or a value is not there."""
    runs, firsts = row.serials()
    count = runs.records
    offsets = np.cumsum(runs.counts) - runs.counts
    producers = np.repeat(runs.producers, runs.counts)
    serials = np.repeat(firsts - offsets, runs.counts) + np.arange(count)
    columns = {
        "position": pa.array(row.first_position + np.arange(count, dtype=np.int64)),
        "partition": pa.array(np.full(count, partition, dtype=np.int32)),
        "producer": pa.array(producers.astype(np.int32)),
        "serial": pa.array(serials),
        "epoch": pa.array(np.full(count, row.epoch, dtype=np.int64)),
        "segment": pa.array(np.full(count, row.segment, dtype=np.int64)),
    }
    if values is not None:
        columns["value"] = pa.array(_values_of(row, producers, serials, values), pa.binary())
    return pa.RecordBatch.from_pydict(columns)


def _values_of(row: SegmentRow, producers: Numbers, serials: Numbers, values: Values) -> list[bytes]:
    try:
        return [values[producer][serial] for producer, serial in zip(producers.tolist(), serials.tolist(), strict=True)]
    except KeyError as missing:
        raise Broken(
            f"segment {row.segment} took serial {missing} of a producer, and it has no row",
            tries=["zerotail journal verify", "zerotail reconcile"],
        ) from None


def _with_values(options: Mapping[str, str]) -> bool:
    said = options.get("values", "true").lower()
    if said not in ("true", "false"):
        raise Misused(f"option values of zerotail-journal is true or false, not {said!r}.")
    return said == "true"


def _required(options: Mapping[str, str], name: str) -> str:
    if not options.get(name):
        raise Misused(f'zerotail-journal needs the option {name}: .option("{name}", …)')
    return options[name]


def _numbers(text: str | None) -> set[PartitionNumber] | None:
    if text is None:
        return None
    try:
        return {PartitionNumber(int(word)) for word in text.split(",")}
    except ValueError:
        raise Misused(f"option partitions of zerotail-journal is a list such as 0,3, not {text!r}.") from None
