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
from zerotail.core.order import Vector
from zerotail.core.restoration.arrivals import admit, split
from zerotail.core.restoration.batch import Batch
from zerotail.core.restoration.statistics import Restored, Tally


def skip(vector: Vector, batches: Iterable[Batch]) -> Restored:
    """The records behind the vector, in the order of the log, each once; memory: a number per producer."""
    tally = Tally()
    return Restored(_skip(vector, batches, tally), tally)


def _skip(vector: Vector, batches: Iterable[Batch], tally: Tally) -> Iterator[pa.RecordBatch]:
    last = dict(vector)
    for batch in batches:
        tally.poll(batch)
        tally.count(partition_records=batch.records_read, foreign=batch.foreign)
        producers, indexes = np.unique(batch.producers, return_inverse=True)
        news = [np.arange(0)]
        for index, rows in split(indexes.astype(np.int16), len(producers)):
            producer = ProducerNumber(int(producers[index]))
            serials = batch.serials[rows]
            covered = int((serials <= vector.get(producer, 0)).sum())
            admitted = admit(serials, last.get(producer, 0) + 1)
            last[producer] = Serial(last.get(producer, 0) + len(admitted.news))
            news.append(rows[admitted.news])
            tally.count(skipped=covered, repeats=len(admitted.repeats) - covered, gaps=len(admitted.gaps))
        fresh_rows = np.sort(np.concatenate(news))
        tally.count(first_hits=len(fresh_rows))
        if len(fresh_rows) == len(batch) > 0:
            yield batch.payload
        elif len(fresh_rows):
            yield batch.rows(fresh_rows)
