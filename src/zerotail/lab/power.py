"""What a power loss leaves of a broker's log: what was flushed, and nothing behind it.

`kill -9` takes a process and leaves the page cache, so a killed broker finds everything again that it had written. A
power loss takes the page cache, too. It is emulated on the files of a broker that was killed: each partition is cut at
its recovery point, the offset up to which Kafka has called `fsync`, as the broker itself has written it down; a topic
that flushes every record has all of it on the disk before it answers, so nothing of it is cut. That is the worst case:
the kernel had written nothing back by itself. (Linux does so after some 30 seconds.)

Not emulated: torn pages, lost files and folders, and the controller's own log, which is flushed at every append.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_CHECKPOINT = "recovery-point-offset-checkpoint"
_BATCH_HEAD = struct.Struct(">qi")
"""Of a batch of records: the offset of its first one, and how many bytes follow these twelve."""
_LAST_OFFSET_AT = 23
"""Where a batch says how far its last offset lies behind its first."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What was taken away from one broker."""

    partitions: int
    """That lost something."""
    records: int
    bytes: int


def cut_unflushed_tail(data: Path, topics: Collection[str], *, flushed: Collection[str] = ()) -> Cut:
    """Cut the logs of these topics at their recovery points; those of `flushed` are whole on the disk."""
    safe = read_checkpoint(data / _CHECKPOINT)
    partitions, records, taken = 0, 0, 0
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        topic, _, number = folder.name.rpartition("-")
        if topic not in topics or topic in flushed or not number.isdigit():
            continue
        lost_records, lost_bytes = _cut_partition(folder, safe.get((topic, int(number)), 0))
        partitions += lost_bytes > 0
        records += lost_records
        taken += lost_bytes
    return Cut(partitions, records, taken)


def read_checkpoint(file: Path) -> dict[tuple[str, int], int]:
    """The offsets of a checkpoint file: a version, a count, and a line for each partition."""
    if not file.is_file():
        return {}
    lines = (line.split() for line in file.read_text().splitlines()[2:])
    return {(topic, int(partition)): int(offset) for topic, partition, offset in lines}


def _cut_partition(folder: Path, safe_offset: int) -> tuple[int, int]:
    """Records and bytes that were cut off behind an offset."""
    records, taken = 0, 0
    for segment in sorted(folder.glob("*.log")):
        place, lost = _find_cut(segment.read_bytes(), safe_offset)
        size = segment.stat().st_size
        if place == size:
            continue
        records += lost
        taken += size - place
        if int(segment.stem) > safe_offset:
            segment.unlink()
        else:
            with segment.open("r+b") as file:
                file.truncate(place)
        # An index may lead behind the cut; Kafka makes a missing one anew.
        for suffix in (".index", ".timeindex", ".snapshot"):
            segment.with_suffix(suffix).unlink(missing_ok=True)
    return records, taken


def _find_cut(content: bytes, safe_offset: int) -> tuple[int, int]:
    """Where the first batch begins that does not lie before the offset as a whole, and how many records follow."""
    place = 0
    while place + _BATCH_HEAD.size <= len(content):
        first, length = _BATCH_HEAD.unpack_from(content, place)
        if length <= 0 or first >= safe_offset:
            break
        place += _BATCH_HEAD.size + length
    return min(place, len(content)), _count_records(content, place)


def _count_records(content: bytes, place: int) -> int:
    counted = 0
    while place + _LAST_OFFSET_AT + 4 <= len(content):
        _, length = _BATCH_HEAD.unpack_from(content, place)
        if length <= 0:
            break
        counted += struct.unpack_from(">i", content, place + _LAST_OFFSET_AT)[0] + 1
        place += _BATCH_HEAD.size + length
    return counted
