"""The segment files of a spool: appended by one thread, read and removed by another.

A group is stored in this order, and whoever waits for it is told only behind the last step:

1. a new file, when the last one is full (its name is the sequence that it begins with)
2. write
3. fdatasync of the file
4. fsync of the folder, for a new file

What fails in 1 or 2 is taken back, and the group is certainly not there: a full disk does no harm. What fails in 3 or 4
leaves the kernel's pages and the disk in disagreement, and asking again would answer yes without writing: the store is
then closed for good, and opening it anew reads what there is.

A start never appends to an old file. It cuts the torn tail off the last one, makes that durable, and begins a new one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from zerotail.errors import Broken
from zerotail.spool import folder as place
from zerotail.spool.frame import Tail, encode_group, scan


class NotStored(Exception):
    """A group is certainly not there; the next one may be."""


class Failed(Exception):
    """Nobody knows whether a group is there; nothing more can be stored."""


@dataclass(slots=True)
class Segment:
    """One file, as far as it is durable."""

    path: Path
    first_sequence: int
    next_sequence: int
    bytes: int


class SegmentStore:
    """The files; `append` and the rest may be called from two threads."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._drained = place.read_drained(folder)
        self._segments, self.cut_bytes = recover(folder, self._drained)
        last = self._segments[-1].next_sequence - 1 if self._segments else 0
        self._next_sequence = max(last, self._drained) + 1
        self._file: int | None = None
        self._lock = Lock()
        if self._segments and self._segments[0].next_sequence <= self._drained + 1:
            self.release(self._drained)  # noted, and not removed before the end

    @property
    def drained(self) -> int:
        """The last sequence that is behind the gate."""
        return self._drained

    @property
    def last_sequence(self) -> int:
        """Of the last entry that is durable."""
        return self._next_sequence - 1

    @property
    def used_bytes(self) -> int:
        """What the files take."""
        with self._lock:
            return sum(segment.bytes for segment in self._segments)

    def append(self, entries: Sequence[bytes]) -> int:
        """Store a group; the sequence of its first entry, once all of it is durable."""
        first = self._next_sequence
        content = encode_group(first, entries)
        segment, is_new = self._writable(first)
        assert self._file is not None  # noqa: S101 - opened above
        try:
            _write_all(self._file, content)  # 2
        except OSError as error:
            self._take_back(segment, is_new, error)
            raise NotStored(error.strerror) from error
        try:
            os.fdatasync(self._file)  # 3
            if is_new:
                place.sync_folder(self._folder)  # 4
        except OSError as error:
            raise Failed(f"what was written could not be made durable: {error.strerror}") from error
        with self._lock:
            segment.bytes += len(content)
            segment.next_sequence = self._next_sequence = first + len(entries)
            if is_new:
                self._segments.append(segment)
        return first

    def find_durable(self, sequence: int) -> Segment | None:
        """The segment with an entry, as far as it is durable now; None when the entry is not there yet."""
        with self._lock:
            found = next((one for one in self._segments if one.next_sequence > sequence), None)
            return None if found is None else replace(found)

    def release(self, sequence: int) -> None:
        """Everything up to a sequence is behind the gate: note it, and remove the files that nobody needs."""
        with self._lock:
            done = [one for one in self._segments if one.next_sequence <= sequence + 1 and not self._is_written(one)]
        # The note comes first: a file that is missing later is one that was drained.
        place.note_drained(self._folder, sequence, durably=bool(done))
        self._drained = sequence
        for segment in done:
            segment.path.unlink()
        with self._lock:
            self._segments = [one for one in self._segments if one not in done]

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _writable(self, first: int) -> tuple[Segment, bool]:
        """The segment to append to, with its file open; and whether it is new."""
        if self._file is not None:
            last = self._segments[-1]
            if last.bytes < self._segment_bytes:
                return last, False
            self.close()
        path = place.segment_path(self._folder, first)
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)  # 1
        except OSError as error:
            raise NotStored(error.strerror) from error
        return Segment(path, first, first, 0), True

    def _take_back(self, segment: Segment, is_new: bool, cause: OSError) -> None:
        assert self._file is not None  # noqa: S101 - it was written to
        try:
            os.ftruncate(self._file, segment.bytes)
            if is_new:
                self.close()
                segment.path.unlink()
        except OSError as error:
            raise Failed(f"{cause.strerror}, and what was written could not be taken back: {error.strerror}") from error

    def _is_written(self, segment: Segment) -> bool:
        return self._file is not None and segment is self._segments[-1]


def recover(folder: Path, drained: int) -> tuple[list[Segment], int]:
    """The segments after a start, and how many bytes of a torn tail were cut off the last one."""
    segments: list[Segment] = []
    cut_bytes = 0
    files = place.list_segments(folder)
    for number, file in enumerate(files):
        _require_no_gap(file, segments[-1].next_sequence if segments else drained + 1, drained)
        content = file.path.read_bytes()
        scanned = scan(content, file.first_sequence)
        if scanned.tail is Tail.DAMAGED or (scanned.tail is Tail.TORN and number < len(files) - 1):
            raise damaged(file.path, scanned.whole_bytes)
        if number == len(files) - 1:
            cut_bytes = len(content) - scanned.whole_bytes
            _keep(file.path, scanned.whole_bytes)
        if scanned.groups:
            next_sequence = scanned.groups[-1].next_sequence
            segments.append(Segment(file.path, file.first_sequence, next_sequence, scanned.whole_bytes))
    return segments, cut_bytes


def damaged(path: Path, offset: int) -> Broken:
    """What was safe once cannot be read any more."""
    return Broken(
        f"{path} is damaged at byte {offset}: entries that were stored safely cannot be read.",
        code="ZT905",
        why="They were acknowledged. Going on without them would lose them.",
        tries=["keep the folder as it is, and bring the file back from a copy of the disk"],
    )


def _require_no_gap(file: place.SegmentFile, expected: int, drained: int) -> None:
    if file.first_sequence > max(expected, drained + 1):
        raise Broken(
            f"entries {max(expected, drained + 1)} to {file.first_sequence - 1} are missing before {file.path}.",
            code="ZT905",
            why="They were acknowledged, and nothing says that they were drained.",
            tries=["bring the segment file back from a copy of the disk"],
        )


def _keep(path: Path, whole_bytes: int) -> None:
    """Cut the last file behind its last whole group, and make that durable; nothing is left of a file without one."""
    if whole_bytes == 0:
        path.unlink()
        return
    file = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(file, whole_bytes)
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
