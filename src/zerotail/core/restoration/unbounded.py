"""Idea two, plan 2a of the notes: the consumer restores the order, and keeps whatever is early.

The log is read once. Memory is what the disorder demands, up to almost everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from zerotail.core.merge import Merge
from zerotail.core.order import Order
from zerotail.core.restoration.batch import Batch
from zerotail.core.restoration.intake import pass_in_order, plan_intake, take_in, worth_passing
from zerotail.core.restoration.statistics import Restored, Tally


def unbounded(order: Order, batches: Iterable[Batch]) -> Restored:
    """The records of the order, in order; a missing record is refused by name.

    >>> from zerotail.core.order import Runs
    >>> from zerotail.core.record import encode_column
    >>> headers = encode_column(257, [2, 1], [1, 1], 0)
    >>> payload = pa.record_batch({"zt": headers, "offset": [0, 1], "value": ["b1", "a1"]})
    >>> restored = unbounded(Order(Runs.of([(1, 1), (2, 1)])), [Batch.of(payload)])
    >>> [value for batch in restored for value in batch.to_pydict()["value"]]
    ['a1', 'b1']
    >>> restored.statistics.first_hits, restored.statistics.cache_hits
    (1, 1)
    """
    tally = Tally()
    return Restored(_unbounded(Merge(order), iter(batches), tally), tally)


def _unbounded(merge: Merge, batches: Iterator[Batch], tally: Tally) -> Iterator[pa.RecordBatch]:
    while merge.blocked_on() is not None:
        batch = next(batches, None)
        if batch is None:
            raise merge.refusal()
        tally.poll(batch)
        tally.count(partition_records=batch.records_read, foreign=batch.foreign)
        if not len(batch):
            continue
        passing = merge.count_in_order(batch.producers, batch.serials)
        if worth_passing(passing, batch):
            yield from pass_in_order(merge, batch.slice(0, passing), tally)
            batch = batch.slice(passing)
        if len(batch):
            yield from take_in(merge, plan_intake(merge, batch), tally)
