"""How entries lie in a file: groups, each under one checksum, written one behind the other.

A group is what one `fsync` made durable: the entries of all threads that waited for it. It is the unit of everything
that can go wrong, because nobody was told of any of its entries before all of them were safe.

1. A group counts only if its checksum fits: all of its entries are there, or none.
2. A group is written after the one before it was made durable. So a spoiled group with a whole one behind it was safe
   once and has been damaged since; with nothing behind it, it is one that nobody was told of, torn by a crash.

    group   magic "ZTS1", length of the body, checksum, first sequence, number of entries | body: the entries
    entry   length of the value, partition, microseconds since 1970, length of the id | id | value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"ZTS1"
MOST_PARTITION = 2**31 - 1
_GROUP = Struct("<4sIIQI")
_CHECKED = Struct("<IQI")
_ENTRY = Struct("<IIqH")
GROUP_BYTES = _GROUP.size
ENTRY_BYTES = _ENTRY.size


class Entry(NamedTuple):
    """Something to be drained: its place in the spool, and what becomes of the instruction."""

    sequence: int
    """1, 2, 3, … in the order in which entries were put."""
    id: str
    partition: int
    value: bytes
    put_at_us: int


class Group(NamedTuple):
    """A whole group: where it lies and what is in it."""

    offset: int
    next_offset: int
    first_sequence: int
    next_sequence: int


class Tail(Enum):
    """What lies behind the last whole group of a file."""

    CLEAN = "nothing"
    TORN = "the remains of a group that nobody was told of"
    DAMAGED = "a group that was safe once, and whole ones behind it"


@dataclass(frozen=True, slots=True)
class Scanned:
    """The whole groups of a file, and what lies behind them."""

    groups: tuple[Group, ...]
    tail: Tail

    @property
    def whole_bytes(self) -> int:
        """Where the last whole group ends."""
        return self.groups[-1].next_offset if self.groups else 0


def encode_entry(identifier: bytes, partition: int, put_at_us: int, value: bytes) -> bytes:
    """An entry as it lies in a group."""
    return _ENTRY.pack(len(value), partition, put_at_us, len(identifier)) + identifier + value


def encode_group(first_sequence: int, entries: Sequence[bytes]) -> bytes:
    """A group of encoded entries, ready to be written."""
    body = b"".join(entries)
    checksum = _checksum(len(body), first_sequence, len(entries), body)
    return _GROUP.pack(MAGIC, len(body), checksum, first_sequence, len(entries)) + body


def find_group(content: bytes, offset: int) -> Group | None:
    """The whole group that begins at `offset`, if one does."""
    begin = offset + GROUP_BYTES
    if begin > len(content):
        return None
    magic, length, checksum, first, count = _GROUP.unpack_from(content, offset)
    end = begin + length
    if magic != MAGIC or end > len(content):
        return None
    with memoryview(content) as view, view[begin:end] as body:
        fits = checksum == _checksum(length, first, count, body)
    return Group(offset, end, first, first + count) if fits else None


def claimed_bytes(header: bytes) -> int:
    """How long a group says it is, by its first `GROUP_BYTES`."""
    return GROUP_BYTES + int(_GROUP.unpack(header)[1])


def decode_entries(content: bytes, group: Group) -> list[Entry]:
    """The entries of a whole group."""
    entries, place = [], group.offset + GROUP_BYTES
    for sequence in range(group.first_sequence, group.next_sequence):
        value_bytes, partition, put_at_us, id_bytes = _ENTRY.unpack_from(content, place)
        place += ENTRY_BYTES
        identifier = content[place : place + id_bytes].decode()
        place += id_bytes
        entries.append(Entry(sequence, identifier, partition, content[place : place + value_bytes], put_at_us))
        place += value_bytes
    return entries


def scan(content: bytes, first_sequence: int) -> Scanned:
    """The groups of a file whose first entry has `first_sequence`."""
    groups: list[Group] = []
    offset, sequence = 0, first_sequence
    while (group := find_group(content, offset)) is not None and group.first_sequence == sequence:
        groups.append(group)
        offset, sequence = group.next_offset, group.next_sequence
    return Scanned(tuple(groups), _tail(content, offset, sequence))


def _tail(content: bytes, offset: int, sequence: int) -> Tail:
    if offset == len(content):
        return Tail.CLEAN
    place = content.find(MAGIC, offset)
    while place >= 0:
        group = find_group(content, place)
        if group is not None and group.first_sequence >= sequence:
            return Tail.DAMAGED
        place = content.find(MAGIC, place + 1)
    return Tail.TORN


def _checksum(length: int, first_sequence: int, count: int, body: bytes | memoryview) -> int:
    return crc32(body, crc32(_CHECKED.pack(length, first_sequence, count)))
