"""Is every row applied exactly once, does the journal hang together, and do both sites say the same?

Three questions, each a function from DataFrames to a DataFrame of differences:

- conservation   every row up to the vectors stands in the journal once (I19), every record of the journal has a row;
- continuity     positions, serials, numbers and both chains follow from segment to segment (I2, I3), by the very rule
                 that `journal verify` uses; the hashes are computed by all tasks, the walk is one task per partition;
- equality       what both sites have is the same: rows by digest, segments by chain. A standby may be behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from zerotail.core.continuity import Fault, find_wrong_head, follow
from zerotail.core.head import Head, first_head
from zerotail.core.identity import Epoch, Position, SegmentNumber
from zerotail.core.reconciliation import Difference, Reconciliation
from zerotail.postgres.reading import Transforms
from zerotail.postgres.verification import Place
from zerotail.spark.stored import (
    RECORDS_PER_TASK,
    Extent,
    HashedSegment,
    applied_records,
    hashed_segments,
    observe_extent,
    stored_rows,
)

_FIRST_DIFFERENCES = 20
_ROW = ["producer", "partition", "serial"]
_PLACE = ["stage", "partition", "segment"]
_ORDER = ["partition", "stage", "segment", "producer", "serial", "kind"]
DIFFERENCES = (
    "kind string, stage string, partition int, segment long, position long, producer int, serial long, what string"
)

Heads = Mapping[Place, Head]


def reconcile(
    spark: SparkSession,
    dsn: str,
    peer_dsn: str | None = None,
    *,
    transforms: Transforms | None = None,
    records_per_task: int = RECORDS_PER_TASK,
) -> Reconciliation:
    """Ask all three questions about a site, the third one when there is another site."""
    extent = observe_extent(dsn, records_per_task)
    rows = stored_rows(spark, dsn, extent).persist()
    applied = applied_records(spark, dsn, extent).persist()
    segments = hashed_segments(spark, dsn, extent, transforms).persist()
    vectors = _vectors(spark, extent.heads)
    found = [
        find_unconserved(rows, applied, vectors),
        find_broken(segments, extent.heads),
        spark.createDataFrame(find_unwalked(extent), DIFFERENCES),
    ]
    if peer_dsn is not None:
        theirs = observe_extent(peer_dsn, records_per_task)
        found.append(find_unequal_rows(rows, stored_rows(spark, peer_dsn, theirs)))
        peer_segments = hashed_segments(spark, peer_dsn, theirs, transforms)
        found.append(find_diverged(segments, peer_segments, _reach(spark, extent, theirs)))
    differences = reduce(DataFrame.unionByName, found).persist()
    try:
        counts = {row["kind"]: row["count"] for row in differences.groupBy("kind").count().collect()}
        # A broken journal comes first: it is one line per partition, and often the cause of everything else.
        by_place = (f.col(name).asc_nulls_last() for name in _ORDER)
        first = differences.orderBy(f.col("kind") != "broken", *by_place).limit(_FIRST_DIFFERENCES)
        taken = rows.join(f.broadcast(vectors), ["producer", "partition"], "left")
        (totals,) = taken.agg(
            f.count("*").alias("rows"), f.count_if(f.col("serial") > _last_taken()).alias("waiting")
        ).collect()
        return Reconciliation(
            totals["rows"],
            applied.count(),
            totals["waiting"],
            segments.count(),
            peer_dsn is not None,
            dict(sorted(counts.items())),
            tuple(Difference(**row.asDict()) for row in first.collect()),
        )
    finally:
        for frame in (differences, rows, applied, segments):
            frame.unpersist()


def find_unconserved(rows: DataFrame, applied: DataFrame, vectors: DataFrame) -> DataFrame:
    """Rows that the journal should hold once and does not, and records that have no row."""
    taken = applied.groupBy(*_ROW).agg(
        f.count("*").alias("times"),
        f.min("stage").alias("stage"),
        f.min("segment").alias("segment"),
        f.min("position").alias("position"),
    )
    known = rows.join(taken, _ROW, "full_outer").join(f.broadcast(vectors), ["producer", "partition"], "left")
    kind = (
        f.when(f.col("digest").isNull(), "lost")
        .when(f.col("times") > 1, "doubled")
        .when(f.col("times").isNull() & (f.col("serial") <= _last_taken()), "missing")
    )
    what = (
        f.when(kind == "lost", f.lit("a segment took it, and it has no row"))
        .when(kind == "doubled", f.format_string("it was taken %d times", "times"))
        .otherwise(f.format_string("no segment took it, and the vector stands at %d", _last_taken()))
    )
    return _differences(known.withColumn("kind", kind).where(f.col("kind").isNotNull()).withColumn("what", what))


def find_broken(segments: DataFrame, heads: Heads) -> DataFrame:
    """The first segment of each stage and partition at which the journal does not hang together."""
    known = dict(heads)

    def walk(table: pa.Table) -> pa.Table:
        place = (table.column("stage")[0].as_py(), table.column("partition")[0].as_py())
        fault = _walk(table.sort_by("segment").column("stored").to_pylist(), known.get(place))
        return pa.Table.from_pylist(_told(place, fault), _DIFFERENCES_IN_ARROW)

    return segments.groupBy("stage", "partition").applyInArrow(walk, DIFFERENCES)


def find_unwalked(extent: Extent) -> pa.Table:
    """Journals that no walk comes to: segments without a head, heads without a segment."""
    walked = {(one.stage, one.partition) for one in extent.segments}
    found = []
    for place in extent.places:
        head = extent.heads.get(place)
        if head is None:
            found += _told(place, Fault("head", SegmentNumber(0), Position(0), "there are segments, and no head"))
        elif place not in walked:
            found += _told(place, find_wrong_head(first_head(Epoch(0), ()), head))
    return pa.Table.from_pylist(found, _DIFFERENCES_IN_ARROW)


def find_unequal_rows(rows: DataFrame, peer_rows: DataFrame) -> DataFrame:
    """Rows that one site has otherwise, or lacks though it has later ones."""
    here = rows.withColumnRenamed("digest", "here")
    there = peer_rows.withColumnRenamed("digest", "there")
    source = ["producer", "partition"]
    reach = here.groupBy(*source).agg(f.max("serial").alias("reach_here"))
    reach = reach.join(there.groupBy(*source).agg(f.max("serial").alias("reach_there")), source, "inner")
    both = here.join(there, _ROW, "full_outer").join(f.broadcast(reach), source, "inner")
    both = both.where(f.col("serial") <= f.least("reach_here", "reach_there"))
    kind = f.when(f.col("here") != f.col("there"), "changed").when(
        f.col("here").isNull() | f.col("there").isNull(), "absent"
    )
    what = (
        f.when(f.col("here").isNull(), "only the other site has it")
        .when(f.col("there").isNull(), "only this site has it")
        .otherwise(f.format_string("digest %s here, %s there", f.lower(f.hex("here")), f.lower(f.hex("there"))))
    )
    return _differences(both.withColumn("kind", kind).where(f.col("kind").isNotNull()).withColumn("what", what))


def find_diverged(segments: DataFrame, peer_segments: DataFrame, reach: DataFrame) -> DataFrame:
    """Segments up to where both sites have come that are not the same."""
    chains = f.concat("chain", "output_chain")
    here = segments.select(*_PLACE, f.col("first_position").alias("position"), chains.alias("here"))
    there = peer_segments.select(*_PLACE, chains.alias("there"))
    both = here.join(there, _PLACE, "full_outer").join(f.broadcast(reach), ["stage", "partition"], "inner")
    both = both.where((f.col("segment") <= f.col("reach")) & ~f.col("here").eqNullSafe(f.col("there")))
    what = (
        f.when(f.col("here").isNull(), "only the other site has it")
        .when(f.col("there").isNull(), "only this site has it")
        .otherwise("the chains differ")
    )
    return _differences(both.withColumn("kind", f.lit("diverged")).withColumn("what", what))


def _walk(stored: list[bytes], head: Head | None) -> Fault | None:
    reached = first_head(Epoch(0), ())
    for packed in stored:
        hashed = msgspec.msgpack.decode(packed, type=HashedSegment)
        behind = follow(reached, hashed.row, hashed.content)
        if isinstance(behind, Fault):
            return behind
        reached = behind
    return None if head is None else find_wrong_head(reached, head)


def _told(place: Place, fault: Fault | None) -> list[dict[str, Any]]:
    if fault is None:
        return []
    producer, serial = fault.record or (None, None)
    return [
        {
            "kind": "broken",
            "stage": place[0],
            "partition": place[1],
            "segment": fault.segment,
            "position": fault.position,
            "producer": producer,
            "serial": serial,
            "what": f"{fault.rule}: {fault.what}",
        }
    ]


def _differences(frame: DataFrame) -> DataFrame:
    """The columns of a difference; those that the frame lacks are null."""
    named = (field.split() for field in DIFFERENCES.split(", "))
    return frame.select(
        *((f.col(name) if name in frame.columns else f.lit(None)).cast(kind).alias(name) for name, kind in named)
    )


def _last_taken() -> Column:
    return f.coalesce(f.col("vector"), f.lit(0))


def _vectors(spark: SparkSession, heads: Heads) -> DataFrame:
    """How far each producer was taken, by partition."""
    taken = [
        (int(producer), int(partition), int(serial))
        for (_, partition), head in heads.items()
        for producer, serial in head.vector.items()
    ]
    return spark.createDataFrame(taken, "producer int, partition int, vector long")


def _reach(spark: SparkSession, here: Extent, there: Extent) -> DataFrame:
    """The last segment that both sites have."""
    common = [
        (stage, int(partition), int(min(head.segment, there.heads[stage, partition].segment)))
        for (stage, partition), head in here.heads.items()
        if (stage, partition) in there.heads
    ]
    return spark.createDataFrame(common, "stage string, partition int, reach long")


_DIFFERENCES_IN_ARROW = pa.schema(
    [
        ("kind", pa.string()),
        ("stage", pa.string()),
        ("partition", pa.int32()),
        ("segment", pa.int64()),
        ("position", pa.int64()),
        ("producer", pa.int32()),
        ("serial", pa.int64()),
        ("what", pa.string()),
    ]
)
