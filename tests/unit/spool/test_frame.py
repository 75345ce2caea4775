"""How entries lie in a file: every cut, and every spoiled byte."""

from __future__ import annotations

import pytest

from zerotail.spool.frame import (
    GROUP_BYTES,
    MAGIC,
    Entry,
    Tail,
    decode_entries,
    encode_entry,
    encode_group,
    find_group,
    scan,
)

pytestmark = pytest.mark.fast

ENTRIES = [
    Entry(5, "c-1", 0, b'{"amount":1}', 1_700_000_000_000_000),
    Entry(6, "é" * 20, 3, b"", 1_700_000_000_000_001),
    Entry(7, "c-3", 2**31 - 1, bytes(range(64)), 1_700_000_000_000_002),
    Entry(8, "c-4", 0, b"x", 1_700_000_000_000_003),
]


def encoded(entry: Entry) -> bytes:
    return encode_entry(entry.id.encode(), entry.partition, entry.put_at_us, entry.value)


GROUPS = [
    encode_group(5, [encoded(ENTRIES[0])]),
    encode_group(6, [encoded(entry) for entry in ENTRIES[1:3]]),
    encode_group(8, [encoded(ENTRIES[3])]),
]
CONTENT = b"".join(GROUPS)
ENDS = [len(b"".join(GROUPS[:count])) for count in range(len(GROUPS) + 1)]


def entries_of(content: bytes) -> list[Entry]:
    return [entry for group in scan(content, 5).groups for entry in decode_entries(content, group)]


def test_what_was_written_is_read() -> None:
    assert entries_of(CONTENT) == ENTRIES
    assert scan(CONTENT, 5).tail is Tail.CLEAN
    assert scan(CONTENT, 5).whole_bytes == len(CONTENT)


def test_a_file_cut_at_any_byte_gives_the_whole_groups_before_it() -> None:
    for length in range(len(CONTENT) + 1):
        whole = max(end for end in ENDS if end <= length)
        scanned = scan(CONTENT[:length], 5)
        assert scanned.whole_bytes == whole
        assert scanned.tail is (Tail.CLEAN if length == whole else Tail.TORN)
        assert entries_of(CONTENT[:length]) == ENTRIES[: (0, 1, 3, 4)[ENDS.index(whole)]]


def test_zeros_behind_a_cut_are_a_torn_tail() -> None:
    for length in range(len(CONTENT) + 1):
        # What a file system shows when the length reached the disk and the bytes did not.
        spoiled = CONTENT[:length] + bytes(len(CONTENT) - length + 4096)
        scanned = scan(spoiled, 5)
        assert scanned.tail is Tail.TORN
        # The last byte of a value may itself be zero: then the cut took nothing away.
        assert scanned.whole_bytes >= max(end for end in ENDS if end <= length)
        assert spoiled[: scanned.whole_bytes] == CONTENT[: scanned.whole_bytes]


@pytest.mark.parametrize("bit", range(8))
def test_a_spoiled_byte_before_a_whole_group_is_damage_and_in_the_last_group_a_torn_tail(bit: int) -> None:
    for place in range(len(CONTENT)):
        spoiled = bytearray(CONTENT)
        spoiled[place] ^= 1 << bit
        scanned = scan(bytes(spoiled), 5)
        assert scanned.whole_bytes == max(end for end in ENDS if end <= place), place
        assert scanned.tail is (Tail.TORN if place >= ENDS[2] else Tail.DAMAGED), place


def test_a_group_that_is_missing_in_the_middle_is_damage() -> None:
    assert scan(GROUPS[0] + GROUPS[2], 5).tail is Tail.DAMAGED


def test_pages_that_reached_the_disk_out_of_order_are_a_torn_tail() -> None:
    group = encode_group(8, [encoded(Entry(8, "c", 0, bytes([n]) * 3000, 0)) for n in range(1, 6)])
    spoiled = bytearray(GROUPS[0] + GROUPS[1] + group)
    spoiled[4096:8192] = bytes(4096)
    assert scan(bytes(spoiled), 5).tail is Tail.TORN


def test_a_value_that_looks_like_an_older_group_does_not_make_a_torn_tail_damage() -> None:
    group = encode_group(8, [encoded(Entry(8, "c", 0, GROUPS[0] + b"end", 0))])
    assert scan(GROUPS[0] + GROUPS[1] + group[:-1], 5).tail is Tail.TORN


def test_the_magic_alone_is_no_group() -> None:
    assert find_group(MAGIC + bytes(GROUP_BYTES), 0) is None
    assert find_group(bytes(4096), 0) is None
