"""A spool seen from outside: what waits in it, since when, and who uses it. Looking changes nothing, and needs no lock.

The process that uses the folder may append, remove and drain meanwhile: a file that goes while it is looked at was
drained, and an end that is half written is on its way.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from zerotail.spool import folder as place
from zerotail.spool.aside import read_aside
from zerotail.spool.frame import Group, Tail, decode_entries, scan

_US = 1_000_000


@dataclass(frozen=True, slots=True)
class SetAside:
    """An entry that was acknowledged and could not become an instruction."""

    sequence: int
    id: str
    partition: int


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """What waits in a folder."""

    folder: str
    producer: str
    used_by: int | None
    """The process that has it open."""
    waiting: int
    """Entries that are not yet behind the gate."""
    waiting_bytes: int
    oldest_seconds: float | None
    """How long the oldest of them has waited."""
    last_sequence: int
    drained: int
    segments: int
    used_bytes: int
    torn_bytes: int
    """Behind the last whole group; the next start cuts them, nobody was told of them."""
    damaged: tuple[str, ...]
    """Files with entries that were safe once and cannot be read."""
    set_aside: tuple[SetAside, ...]

    @property
    def ok(self) -> bool:
        """Whether nobody has to look at it."""
        return not self.damaged and not self.set_aside


def observe_spool(path: str | Path) -> SpoolStatus:
    """What waits in a folder now; `Refused` when it is no spool."""
    folder = Path(path).resolve()
    producer = place.require_producer(folder)
    drained = place.read_drained(folder)
    last, waiting_bytes, used_bytes, torn_bytes, segments = drained, 0, 0, 0, 0
    oldest_us: int | None = None
    damaged = []
    files = place.list_segments(folder)
    for number, file in enumerate(files):
        try:
            content = file.path.read_bytes()
        except FileNotFoundError:
            continue
        segments += 1
        used_bytes += len(content)
        scanned = scan(content, file.first_sequence)
        if scanned.tail is Tail.DAMAGED or (scanned.tail is Tail.TORN and number < len(files) - 1):
            damaged.append(file.path.name)
        torn_bytes += len(content) - scanned.whole_bytes
        for group in scanned.groups:
            if group.next_sequence > drained + 1:
                waiting_bytes += group.next_offset - group.offset
                oldest_us = oldest_us or _put_at_us(content, group, drained)
        last = max(last, scanned.groups[-1].next_sequence - 1 if scanned.groups else 0)
    return SpoolStatus(
        str(folder),
        producer,
        place.find_holder(folder),
        last - drained,
        waiting_bytes,
        None if oldest_us is None else round(max(0.0, time.time() - oldest_us / _US), 3),
        last,
        drained,
        segments,
        used_bytes,
        torn_bytes,
        tuple(damaged),
        tuple(SetAside(entry.sequence, entry.id, entry.partition) for entry in read_aside(folder)),
    )


def _put_at_us(content: bytes, group: Group, drained: int) -> int:
    return next(entry.put_at_us for entry in decode_entries(content, group) if entry.sequence > drained)
