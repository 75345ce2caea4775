"""Idea one of the notes: nobody puts the order right.

Where the state comes from the database, the journaled records need not be seen again. Each producer's records
up to the vector are passed over, the others follow in the order of the log, which is free: nothing outside
depends on it yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from zerotail.core.identity import ProducerNumber, Serial
from zerotail.core.order import Order, Runs, Vector
from zerotail.core.restoration.arrivals import admit, split
from zerotail.core.restoration.batch import Batch
from zerotail.core.restoration.statistics import Restored, Tally


def skip(vector: Vector, batches: Iterable[Batch]) -> Restored:
    """The records behind the vector, in the order of the log, each once; memory: a number per producer."""
    tally = Tally()
    return Restored(_skip(vector, batches, tally), tally)


def _skip(vector: Vector, batches: Iterable[Batch], tally: Tally) -> Iterator[pa.RecordBatch]:
    last = dict(vector)
    known = Order(Runs.of([]), before=last)
    for batch in batches:
        tally.poll(batch)
        tally.count(partition_records=batch.records_read, foreign=batch.foreign)
        indexes = known.indexes_of(batch.producers)
        if (indexes < 0).any():
            strangers = np.unique(batch.producers[indexes < 0]).tolist()
            last.update(dict.fromkeys(map(ProducerNumber, strangers), Serial(0)))
            known = Order(Runs.of([]), before=last)
            indexes = known.indexes_of(batch.producers)
        news = np.zeros(len(batch), dtype=np.bool_)
        skipped = repeats = gaps = 0
        for index, rows in split(indexes, len(known.producers)):
            producer = known.producers[index]
            serials = batch.serials[rows]
            admitted = admit(serials, last[producer] + 1)
            last[producer] = Serial(last[producer] + len(admitted.news))
            news[rows[admitted.news]] = True
            skipped += int((serials <= vector.get(producer, 0)).sum())
            repeats += len(admitted.repeats)
            gaps += len(admitted.gaps)
        fresh = int(news.sum())
        tally.count(first_hits=fresh, skipped=skipped, repeats=repeats - skipped, gaps=gaps)
        if fresh:
            yield batch.payload if fresh == len(batch) else batch.payload.filter(pa.array(news))
