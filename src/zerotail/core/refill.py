"""The ordered refill: instructions of several producers written back into Kafka in the order of the journal.

Each source gives one producer's records in serial order, straight from an index of the database. The merge
takes runs, not single messages, so that the writer sends full batches; a source is read on only when its
producer is next, so that no more than about one batch per producer is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from zerotail.core.identity import ProducerNumber
from zerotail.core.merge import Merge
from zerotail.core.order import Order


def merge_sources(order: Order, sources: Mapping[ProducerNumber, Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The records of the order, in order. Source p begins behind the order's vector and lacks no serial.

    A record that a source ends without is refused by name; what a source has behind the order's end is left.

    >>> from zerotail.core.order import Runs
    >>> a, b = ProducerNumber(1), ProducerNumber(2)
    >>> source = {a: pa.record_batch({"value": ["a1", "a2"]}), b: pa.record_batch({"value": ["b1", "b2"]})}
    >>> order = Order(Runs.of([(a, 1), (b, 2), (a, 1)]))
    >>> merged = merge_sources(order, {producer: iter([batch]) for producer, batch in source.items()})
    >>> [value for batch in merged for value in batch.to_pydict()["value"]]
    ['a1', 'b1', 'b2', 'a2']
    """
    merge = Merge(order)
    while (blocked := merge.blocked_on()) is not None:
        producer, _ = blocked
        batch = next(sources.get(producer, iter(())), None)
        if batch is None:
            raise merge.refusal()
        merge.put(producer, batch)
        yield from merge.ready()
