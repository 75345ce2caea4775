"""How far a query is behind, by what Spark says of its last batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from zerotail.core.identity import Offset, PartitionNumber

Offsets = Mapping[PartitionNumber, Offset]


def last_offsets(query: StreamingQuery) -> tuple[Offsets, Offsets] | None:
    """Of the single topic that a query reads: where its last batch ended, and where the log ended then."""
    progress = query.lastProgress
    source = progress["sources"][0] if progress else None
    if source is None or source["endOffset"] is None or source["latestOffset"] is None:
        return None
    return _offsets(source["endOffset"]), _offsets(source["latestOffset"])


def records_between(reached: Offsets, wanted: Offsets) -> int:
    """How many records lie between, in all partitions; none where more was reached than wanted."""
    return sum(max(0, offset - reached.get(partition, offset)) for partition, offset in wanted.items())


def _offsets(said: Any) -> Offsets:
    """Spark's `{"topic": {"0": 17}}`, as text or taken apart."""
    topics = json.loads(said) if isinstance(said, str) else said
    return {
        PartitionNumber(int(partition)): Offset(int(offset))
        for partitions in topics.values()
        for partition, offset in partitions.items()
    }
