"""Reads the entries of a spool in order, each group once, and never one that is not durable."""

from __future__ import annotations

import os
from pathlib import Path

from zerotail.spool.frame import GROUP_BYTES, Entry, Group, claimed_bytes, decode_entries, find_group
from zerotail.spool.store import Segment, SegmentStore, damaged


class Reader:
    """Stands before a group of a segment; whoever asks for something earlier sends it back to the beginning of one."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._path: Path | None = None
        self._offset = 0
        self._sequence = 0

    def read(self, after: int, most_entries: int, most_bytes: int) -> list[Entry]:
        """Entries behind a sequence: whole groups, at least one if there is one, until there are so many or so much."""
        found: list[Entry] = []
        size = 0
        while len(found) < most_entries and size < most_bytes:
            wanted = found[-1].sequence + 1 if found else after + 1
            segment = self._store.find_durable(wanted)
            if segment is None:
                break
            entries = self._group_with(segment, max(wanted, segment.first_sequence))
            found += [entry for entry in entries if entry.sequence >= wanted]
            size += sum(len(entry.value) for entry in entries)
        return found

    def _group_with(self, segment: Segment, sequence: int) -> list[Entry]:
        if self._path != segment.path or sequence < self._sequence:
            self._path, self._offset = segment.path, 0
        with segment.path.open("rb") as file:
            while True:
                group, content = _read_group(file.fileno(), segment, self._offset)
                self._offset += len(content)
                self._sequence = group.next_sequence
                if sequence < group.next_sequence:
                    return decode_entries(content, group)


def _read_group(file: int, segment: Segment, offset: int) -> tuple[Group, bytes]:
    """A group, and its bytes alone."""
    header = os.pread(file, GROUP_BYTES, offset)
    if len(header) == GROUP_BYTES:
        content = os.pread(file, min(claimed_bytes(header), segment.bytes - offset), offset)
        group = find_group(content, 0)
        if group is not None:
            return group, content
    raise damaged(segment.path, offset)
