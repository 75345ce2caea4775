"""The file of attempts: one JSON object per line, appended, flushed to disk before anybody is answered.

Whatever was appended while one flush was under way goes to disk together in the next one, so that a flush is
paid once for a batch, and once for all connections that wait at the same time.

1. The sequence numbers in the file are 1, 2, 3, …
2. What `settle` has returned for is on disk.
3. A last line without its end was never answered for; it is cut off when the file is opened.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import msgspec

from zerotail.errors import Broken, Refused
from zerotail.lab.receiver.protocol import Attempt

FILE_NAME = "attempts.jsonl"
_LINES_PER_MARK = 256

_attempts: msgspec.json.Decoder[Attempt] = msgspec.json.Decoder(Attempt)
_encoder = msgspec.json.Encoder()


class Record:
    """Opened once per process; `remember` is called for every attempt that is already in the file.

    `end_sequence` is the last attempt that was appended, `settled_sequence` the last one on disk.
    """

    def __init__(self, folder: Path, remember: Callable[[Attempt], None]) -> None:
        self._path = folder / FILE_NAME
        self._file = _open_alone(self._path)
        self._marks = array("Q")
        """Where every 256th line begins, so that a page is found without reading what lies before it."""
        self._size_bytes = 0
        self.end_sequence = 0
        self._recover(remember)
        self.settled_sequence = self.end_sequence
        self._waiting: list[bytes] = []
        self._flush: asyncio.Future[None] | None = None
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="disk")

    def append(self, attempt: Attempt) -> None:
        """Take the attempt that follows the last one; it is on disk when `settle` returns."""
        self._waiting.append(_encoder.encode(attempt) + b"\n")
        self._count_line(len(self._waiting[-1]))

    async def settle(self) -> None:
        """Return when everything appended so far is on disk; `Broken` if the disk refuses."""
        wanted_sequence = self.end_sequence
        while self.settled_sequence < wanted_sequence:
            if self._flush is None:
                self._flush = asyncio.ensure_future(self._flush_waiting())
            # Shielded: whoever gives up waiting must not stop the flush that others wait for.
            await asyncio.shield(self._flush)

    def close(self) -> None:
        """Let go of the file; what has not settled is lost."""
        self._disk.shutdown()
        os.close(self._file)

    async def _flush_waiting(self) -> None:
        lines, sequence = b"".join(self._waiting), self.end_sequence
        self._waiting.clear()
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._write, lines)
        except OSError as error:
            # The flush stays failed: nobody knows what is on disk now, so nothing settles again.
            raise Broken(f"{self._path} cannot be written: {error.strerror}") from error
        self.settled_sequence = sequence
        self._flush = None

    def page(self, since_sequence: int, limit: int) -> list[bytes]:
        """The settled lines after a sequence, without their ends."""
        count = min(limit, self.settled_sequence - since_sequence)
        if count <= 0:
            return []
        mark, skipped = divmod(since_sequence, _LINES_PER_MARK)
        with self._path.open("rb") as file:
            file.seek(self._marks[mark])
            return [line.rstrip(b"\n") for line in islice(file, skipped, skipped + count)]

    def _write(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[os.write(self._file, view) :]
        os.fdatasync(self._file)

    def _count_line(self, size_bytes: int) -> None:
        if self.end_sequence % _LINES_PER_MARK == 0:
            self._marks.append(self._size_bytes)
        self.end_sequence += 1
        self._size_bytes += size_bytes

    def _recover(self, remember: Callable[[Attempt], None]) -> None:
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                attempt = self._decode(line)
                remember(attempt)
                self._count_line(len(line))
        os.ftruncate(self._file, self._size_bytes)
        os.fsync(self._file)

    def _decode(self, line: bytes) -> Attempt:
        expected = self.end_sequence + 1
        try:
            attempt = _attempts.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Broken(f"{self._path} is damaged in line {expected}: {error}") from error
        if attempt.sequence != expected:
            raise Broken(f"{self._path} is damaged: line {expected} has sequence {attempt.sequence}")
        return attempt


def _open_alone(path: Path) -> int:
    """The file, made if there is none, and locked for this process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        raise Refused(f"{path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        raise Refused(f"{path} belongs to another receiver that is running") from error
    return file
