"""What a restoration reads: batches of records as Arrow gives them, with the numbers that their headers
carry.

A `Batch` is the rows of one poll: the payload leaves a restoration as it came, row by row; the producer, the
serial and the offset of each row stand beside it as arrays. Foreign rows are gone before a restoration sees
them, and counted.

A `Log` is a partition that can be read from an offset as often as one likes. It is all that the bounded
restoration asks of Kafka, so that a list of batches can stand in for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zerotail.core.admission import Limits, within_cuts
from zerotail.core.identity import Offset
from zerotail.core.installation import Installation
from zerotail.core.order import Numbers
from zerotail.core.record import HEADER_NAME, decode_column

OFFSET_NAME = "offset"


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows in the order of the log; row i is record (producers[i], serials[i]) and lies at offsets[i]."""

    payload: pa.RecordBatch
    producers: Numbers
    serials: Numbers
    offsets: Numbers
    foreign: int = 0
    """How many rows without a header of ours were left out."""

    @classmethod
    def of(
        cls,
        payload: pa.RecordBatch,
        installation: Installation | None = None,
        *,
        header: str = HEADER_NAME,
        offset: str = OFFSET_NAME,
    ) -> Batch:
        """The batch of a payload that has a column of headers and one of offsets.

        >>> from zerotail.core.record import encode_column
        >>> headers = encode_column(257, 1, [1, 2], 0)
        >>> batch = Batch.of(pa.record_batch({"zt": headers, "offset": [7, 8], "value": [b"a", b"b"]}))
        >>> batch.serials.tolist(), batch.offsets.tolist()
        ([1, 2], [7, 8])
        """
        headers = decode_column(payload.column(header), installation)
        offsets = payload.column(offset).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        if headers.own.all():
            return cls(payload, headers.producers, headers.serials, offsets)
        own = headers.own
        return cls(
            payload=payload.filter(pa.array(own)),
            producers=headers.producers[own],
            serials=headers.serials[own],
            offsets=offsets[own],
            foreign=len(own) - int(own.sum()),
        )

    @classmethod
    def within(cls, payload: pa.RecordBatch, limits: Limits, installation: Installation | None = None) -> Batch:
        """The same without records of another history, which are counted as foreign."""
        found = decode_column(payload.column(HEADER_NAME), installation)
        kept = ~found.own | within_cuts(found.producers, found.serials, found.epochs, limits)
        if kept.all():
            return cls.of(payload, installation)
        batch = cls.of(payload.filter(pa.array(kept)), installation)
        orphans = len(kept) - int(np.count_nonzero(kept))
        return cls(batch.payload, batch.producers, batch.serials, batch.offsets, batch.foreign + orphans)

    def __len__(self) -> int:
        return len(self.producers)

    @property
    def records_read(self) -> int:
        """How many records of the log it took to fill the batch."""
        return len(self) + self.foreign

    def slice(self, first: int, rows: int | None = None) -> Batch:
        """A part of the batch, sharing its memory; the foreign rows stay counted with the whole."""
        end = len(self) if rows is None else first + rows
        return Batch(
            self.payload.slice(first, rows),
            self.producers[first:end],
            self.serials[first:end],
            self.offsets[first:end],
        )

    def rows(self, rows: npt.NDArray[np.intp]) -> pa.RecordBatch:
        """A copy of some rows of the payload, which keeps no other row in memory."""
        return self.payload.take(pa.array(rows))


class Log(Protocol):
    """A partition that can be opened at an offset, as often as one likes, and does not change meanwhile."""

    @property
    def records(self) -> int:
        """How many records it holds."""
        ...

    def open(self, offset: Offset | None) -> Iterator[Batch]:
        """The records from this offset on, None for all; it ends, it does not wait for more."""
        ...
