"""A place on the local disk for records that a bounded restore has no room for.

Each evicted producer has a file, written and read as a stream of Arrow batches. A file is taken out of its folder as
soon as it is open at both ends: whatever ends the process, nothing stays behind.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa

from zerotail.core.identity import ProducerNumber
from zerotail.errors import Misused


class SpillFolder:
    """Files in one folder; `Misused` when it cannot be written."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise Misused(f"--spill {folder} is no folder that can be written to.", code="ZT148")
        self._folder = folder
        self._files: dict[ProducerNumber, _File] = {}

    def put(self, producer: ProducerNumber, records: pa.RecordBatch) -> None:
        """Keep the next records of a producer."""
        if producer not in self._files:
            self._files[producer] = _File(self._folder, records.schema)
        self._files[producer].put(records)

    def take(self, producer: ProducerNumber) -> pa.RecordBatch | None:
        """The oldest that were put and not taken yet, as many as were put at once; None if there are none."""
        return self._files[producer].take() if producer in self._files else None


class _File:
    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        handle, path = tempfile.mkstemp(prefix="zerotail-spill-", dir=folder)
        os.close(handle)
        self._writer = pa.ipc.new_stream(pa.OSFile(path, "wb"), schema)
        self._source = pa.OSFile(path, "rb")
        Path(path).unlink()
        self._reader: pa.RecordBatchReader | None = None
        self._waiting = 0

    def put(self, records: pa.RecordBatch) -> None:
        self._writer.write_batch(records)
        self._waiting += 1

    def take(self) -> pa.RecordBatch | None:
        # A stream is never read to its end: what is behind the last batch has not been written yet.
        if not self._waiting:
            return None
        if self._reader is None:
            self._reader = pa.ipc.open_stream(self._source)
        self._waiting -= 1
        return self._reader.read_next_batch()
