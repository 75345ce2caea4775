"""Kafka's messages as columns: header, offset and value of each, for Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from zerotail.core.record import HEADER_NAME
from zerotail.core.restoration.batch import OFFSET_NAME

SCHEMA = pa.schema([(HEADER_NAME, pa.binary()), (OFFSET_NAME, pa.int64()), ("value", pa.binary())])


class Columns:
    """What was taken out of the messages of some polls."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def take(self, messages: list[Message]) -> None:
        """Take the messages of one poll apart, and copy what they hold while it still is in the processor's cache."""
        headers = [
            entries[0][1] if (entries := one.headers()) and entries[0][0] == HEADER_NAME else _find_header(entries)  # type: ignore[index]
            for one in messages
        ]
        values = [one.value() for one in messages]
        columns = [pa.array(headers, pa.binary()), pa.array(_offsets(messages)), pa.array(values, pa.binary())]
        self._batches.append(pa.record_batch(columns, schema=SCHEMA))
        self._rows += len(messages)

    def payload(self) -> pa.RecordBatch:
        """All of it."""
        return pa.concat_batches(self._batches)


def _offsets(messages: list[Message]) -> np.ndarray:
    """The offsets of a poll: they rise, so that the first and the last often say all of them."""
    first, last = messages[0].offset() or 0, messages[-1].offset() or 0
    if last - first + 1 == len(messages):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.array([one.offset() for one in messages], dtype=np.int64)


def _find_header(entries: Any) -> bytes | None:
    for entry in entries or ():
        if entry[0] == HEADER_NAME and isinstance(entry[1], bytes):
            return entry[1]
    return None
