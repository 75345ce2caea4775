"""Is the copy of a topic right? Source and target compared as two tables, by count, order and digest.

A copy says where it comes from, so the two tables are joined by the source's partition and offset:

    lost        a record of the source that should be at the target and is not
    doubled     a record of the source that is there more than once
    different   a copy with another key, value, timestamp or other headers, or in another partition
    disordered  a copy that stands behind one with a higher offset of the source
    foreign     a copy of a record that the source does not have (and has not deleted)

MirrorMaker 2 leaves no trace in its copies. There records are told apart by their digest alone, in each partition: how
many more or fewer of each there are, and, when these agree, whether they stand in the same order.

What retention has deleted at one side is left out of the comparison.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from zerotail.core.provenance import HEADER_NAME
from zerotail.core.topology import Flow
from zerotail.kafka.cluster import Cluster
from zerotail.mirror.comparison import Compared
from zerotail.mirror.verification import Bounds, Compare

_NOTHING = -1
_PLACE = ["partition", "source_offset"]


@dataclass(frozen=True, slots=True)
class Side:
    """One topic of one cluster, up to fixed ends."""

    cluster: Cluster
    topic: str
    bounds: Bounds


def comparer(spark: SparkSession, flow: Flow, source: Cluster, target: Cluster) -> Compare:
    """The job as a function of two topics and their bounds."""

    def compare(topic: str, bounds: Bounds, copy: str, copy_bounds: Bounds) -> Compared:
        return verify_topic(spark, flow, Side(source, topic, bounds), Side(target, copy, copy_bounds))

    return compare


def verify_topic(spark: SparkSession, flow: Flow, source: Side, target: Side) -> Compared:
    """Compare a topic of the source, up to where it was copied, with its copy."""
    spark.conf.set("spark.sql.shuffle.partitions", str(max(2, min(64, 2 * len(source.bounds)))))
    originals = _read(spark, source).where(~_left_out(flow))
    copies = _read(spark, target)
    if flow.engine == "mm2":
        counts = _by_digest(originals, copies)
    else:
        counts = _by_provenance(originals, _own_copies(copies, flow, source.topic), source, target)
    return Compared(source.topic, target.topic, **counts)


def _read(spark: SparkSession, side: Side) -> DataFrame:
    """The records with their digest; the headers stay for those who look further."""
    known = {number: bounds for number, bounds in side.bounds.items() if bounds[1] > bounds[0]}
    columns = ["partition", "offset", "headers", "key", "value", "timestamp"]
    if not known:
        schema = (
            "partition int, offset bigint, headers array<struct<key: string, value: binary>>, key binary, "
            "value binary, timestamp timestamp"
        )
        return spark.createDataFrame([], schema).select(*columns)
    options = {
        **side.cluster.for_connector(),
        "assign": json.dumps({side.topic: sorted(known)}),
        "startingOffsets": json.dumps({side.topic: {str(number): first for number, (first, _) in known.items()}}),
        "endingOffsets": json.dumps({side.topic: {str(number): behind for number, (_, behind) in known.items()}}),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
    }
    return spark.read.format("kafka").options(**options).load().select(*columns)


def _digest(headers: Column) -> Column:
    # Null leaves such a hash as it is: whether something is null has to be said.
    return f.xxhash64(
        f.col("key").isNull(),
        "key",
        f.col("value").isNull(),
        "value",
        f.unix_millis("timestamp"),
        f.transform(f.coalesce(headers, f.array()), lambda one: f.struct(one.key, one.value.isNull(), one.value)),
    )


def _left_out(flow: Flow) -> Column:
    """Whether a record of the source is not to be copied: a mirror brought it."""
    cluster = f"split(decode(substring(one.value, 33), 'utf-8'), '/')[0] = '{flow.target}'"
    which = "true" if flow.local_only else cluster
    if flow.engine == "mm2":
        return f.lit(False)
    return f.expr(f"exists(coalesce(headers, array()), one -> one.key = '{HEADER_NAME}' and {which})")


def _own_copies(copies: DataFrame, flow: Flow, topic: str) -> DataFrame:
    """The records of the target that this flow has copied, with the place that each had at the source."""
    return (
        copies.withColumn("stamp", f.expr("element_at(headers, -1)"))
        .where(f.col("stamp.key") == HEADER_NAME)
        .where(f.expr("decode(substring(stamp.value, 33), 'utf-8')") == f"{flow.source}/{topic}")
        .withColumn("source_offset", f.expr("cast(conv(hex(substring(stamp.value, 9, 8)), 16, 10) as bigint)"))
        .withColumn("source_partition", f.expr("cast(conv(hex(substring(stamp.value, 5, 4)), 16, 10) as int)"))
        .withColumn("copied", _digest(f.expr("slice(headers, 1, size(headers) - 1)")))
        .select("partition", "offset", "source_partition", "source_offset", "copied")
    )


def _by_provenance(originals: DataFrame, copies: DataFrame, source: Side, target: Side) -> dict[str, int]:
    in_order = Window.partitionBy("partition").orderBy("offset")
    walked = copies.withColumn("before", f.lag("source_offset", 1, _NOTHING).over(in_order))
    gathered = walked.groupBy(f.col("source_partition").alias("partition"), "source_offset").agg(
        f.count("*").alias("times"),
        f.min("copied").alias("least"),
        f.max("copied").alias("most"),
        f.count_if(f.col("partition") != f.col("source_partition")).alias("misplaced"),
        f.count_if(f.col("before") >= f.col("source_offset")).alias("disordered"),
    )
    own = _digest(f.col("headers")).alias("own")
    stored = originals.select("partition", f.col("offset").alias("source_offset"), own)
    joined = stored.join(gathered, _PLACE, "full_outer")
    begins = f.create_map(*[f.lit(x) for number, (first, _) in source.bounds.items() for x in (number, int(first))])
    ends = f.create_map(*[f.lit(x) for number, (_, behind) in source.bounds.items() for x in (number, int(behind))])
    # A target that has deleted its beginning holds copies from its first one on.
    cut = [number for number, (first, _) in target.bounds.items() if first > 0]
    first_copy = copies.groupBy("partition").agg(f.min("source_offset").alias("first_copy"))
    joined = joined.join(f.broadcast(first_copy), "partition", "left")
    expected = ~f.col("partition").isin(cut) | (f.col("source_offset") >= f.col("first_copy"))
    known = f.col("own").isNotNull()
    offset = f.col("source_offset")
    inside = (offset >= begins[f.col("partition")]) & (offset < ends[f.col("partition")])
    wrong = (f.col("least") != f.col("own")) | (f.col("most") != f.col("own")) | (f.col("misplaced") > 0)
    row = joined.agg(
        f.count_if(known).alias("records"),
        f.coalesce(f.sum("times"), f.lit(0)).alias("copies"),
        f.count_if(known & f.col("times").isNull() & expected).alias("lost"),
        f.coalesce(f.sum(f.greatest(f.col("times") - 1, f.lit(0))), f.lit(0)).alias("doubled"),
        f.count_if(known & f.col("times").isNotNull() & wrong).alias("different"),
        f.coalesce(f.sum("disordered"), f.lit(0)).alias("disordered"),
        f.count_if(~known & inside).alias("foreign"),
    ).first()
    return _counts(row)


def _by_digest(originals: DataFrame, copies: DataFrame) -> dict[str, int]:
    ours = originals.select("partition", "offset", _digest(f.col("headers")).alias("digest"))
    theirs = copies.select("partition", "offset", _digest(f.col("headers")).alias("digest"))
    by_place = Window.partitionBy("partition").orderBy("offset")

    def numbered(frame: DataFrame, name: str) -> DataFrame:
        return frame.withColumn("number", f.row_number().over(by_place)).select(
            "partition", "number", f.col("digest").alias(name)
        )

    left = ours.groupBy("partition", "digest").agg(f.count("*").alias("own"))
    right = theirs.groupBy("partition", "digest").agg(f.count("*").alias("times"))
    both = left.join(right, ["partition", "digest"], "full_outer").na.fill(0, ["own", "times"])
    found = both.agg(
        f.coalesce(f.sum("own"), f.lit(0)).alias("records"),
        f.coalesce(f.sum("times"), f.lit(0)).alias("copies"),
        f.coalesce(f.sum(f.greatest(f.col("own") - f.col("times"), f.lit(0))), f.lit(0)).alias("lost"),
        f.coalesce(
            f.sum(f.when(f.col("own") > 0, f.greatest(f.col("times") - f.col("own"), f.lit(0)))), f.lit(0)
        ).alias("doubled"),
        f.lit(0).alias("different"),
        f.coalesce(f.sum(f.when(f.col("own") == 0, f.col("times"))), f.lit(0)).alias("foreign"),
    ).first()
    counts = _counts(found)
    counts["disordered"] = 0
    if not (counts["lost"] or counts["doubled"] or counts["foreign"]):
        pairs = numbered(ours, "own").join(numbered(theirs, "copied"), ["partition", "number"])
        counts["disordered"] = pairs.where(f.col("own") != f.col("copied")).count()
    return counts


def _counts(row: Any) -> dict[str, int]:
    return {name: int(value) for name, value in row.asDict().items()}
