"""Entries that could not become instructions because their identifier belongs to other bytes, or no stage
has their partition.

They were acknowledged, so they are kept, durably, in a file of the folder until somebody has looked. The file holds
groups of one entry, each with the sequence that it had, once: while a site works alone the same entries are brought
to it again and again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from zerotail.private import open_file
from zerotail.spool.folder import SET_ASIDE, sync_folder
from zerotail.spool.frame import Entry, decode_entries, encode_entry, encode_group, find_group


def keep_aside(folder: Path, entries: Sequence[Entry]) -> None:
    """Return when the entries are durable in the file."""
    there = {entry.sequence for entry in read_aside(folder)} if entries else set()
    content = b"".join(
        encode_group(one.sequence, [encode_entry(one.id.encode(), one.partition, one.put_at_us, one.value)])
        for one in entries
        if one.sequence not in there
    )
    if not content:
        return
    path = folder / SET_ASIDE
    whole_bytes = _whole_bytes(path.read_bytes()) if path.exists() else 0
    with open_file(path, "r+b" if path.exists() else "wb") as file:
        # Behind the last whole one: what a crash has left half written goes.
        file.truncate(whole_bytes)
        file.seek(whole_bytes)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def read_aside(folder: Path) -> list[Entry]:
    """What was set aside, by sequence."""
    path = folder / SET_ASIDE
    content = path.read_bytes() if path.exists() else b""
    found: dict[int, Entry] = {}
    offset = 0
    while (group := find_group(content, offset)) is not None:
        found |= {entry.sequence: entry for entry in decode_entries(content, group)}
        offset = group.next_offset
    return [found[sequence] for sequence in sorted(found)]


def _whole_bytes(content: bytes) -> int:
    offset = 0
    while (group := find_group(content, offset)) is not None:
        offset = group.next_offset
    return offset
