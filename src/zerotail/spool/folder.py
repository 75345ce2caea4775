"""The folder of a spool: whose it is, who uses it, how far it is drained, and its segment files.

    spool.json               which producer the entries are for; written once, before anything else
    lock                     held by the one process that uses the folder
    00000000000000000001.segment   entries from that sequence on
    drained                  the last sequence that is behind the gate
    set-aside                entries whose id was taken by other bytes: kept for somebody to look at

`drained` is a note that saves work, since what is drained twice is stored once. It is made durable before a segment is
removed, so that a missing segment is either drained for certain or a loss that must be reported.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from zerotail import private
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable

SUFFIX = ".segment"
SET_ASIDE = "set-aside"
_FORMAT = 1
_ABOUT = "spool.json"
_LOCK = "lock"
_DRAINED = "drained"
_DRAINED_FORM = re.compile(rb"(\d{20}) ([0-9a-f]{8})\n")
_SEGMENT_FORM = re.compile(rf"\d{{20}}{re.escape(SUFFIX)}")
_LOCK_SECONDS = 0.5
"""A command that looks holds the lock for a moment, to see whether it is free."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment by its name."""

    path: Path
    first_sequence: int


class FolderLock:
    """The right to use a folder; `Refused` when another process has it."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            wait_until("the lock", lambda: _try_lock(self._file, fcntl.LOCK_EX), Deadline.after(_LOCK_SECONDS))
        except Unavailable as error:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise Refused(
                f"the spool {folder} is in use by another process ({holder}).",
                code="ZT901",
                why="Two that append to one file would spoil it.",
                tries=[f"zerotail spool status {folder}", "or give each process a folder of its own"],
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def leave_to_parent(self) -> None:
        """In a forked child: the lock is the parent's alone."""
        os.close(self._file)

    def release(self) -> None:
        """Let others have the folder."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)


def find_holder(folder: Path) -> int | None:
    """The process that uses the folder, if one does."""
    try:
        file = os.open(folder / _LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if _try_lock(file, fcntl.LOCK_SH):
            return None
        said = os.pread(file, 32, 0).strip()
        return int(said) if said.isdigit() else 0
    finally:
        os.close(file)


def _try_lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def make_folder(folder: Path) -> None:
    """Make the folder if it is missing; its own place in the disk is made durable, too."""
    if not folder.is_dir():
        private.make_folder(folder)
        sync_folder(folder.parent)


def claim_folder(folder: Path, producer: str | None) -> str:
    """Whose entries these are: as the folder says, or `producer` for a new one; the caller holds the lock."""
    known = find_producer(folder)
    if known is None:
        if producer is None:
            raise _no_spool(folder)
        others = sorted(path.name for path in folder.iterdir() if path.name not in (_LOCK, f"{_ABOUT}.new"))
        if others:
            raise Refused(
                f"{folder} holds other files ({others[0]}) and is no spool.", code="ZT902", tries=["an empty folder"]
            )
        write_durably(folder / _ABOUT, json.dumps({"format": _FORMAT, "producer": producer}).encode())
        return producer
    if producer is not None:
        _require_same(folder, known, producer)
    return known


def find_producer(folder: Path) -> str | None:
    """Whose entries the folder holds; None if it is no spool yet."""
    try:
        said = json.loads((folder / _ABOUT).read_bytes())
        known, producer = said["format"] == _FORMAT, str(said["producer"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        known, producer = False, ""
    if not known:
        raise Refused(
            f"{folder / _ABOUT} cannot be read, or is of another version.",
            code="ZT902",
            tries=["zerotail version", "or bring the file back from a copy"],
        )
    return producer


def require_producer(folder: Path) -> str:
    """Whose entries the folder holds; `Refused` if it is no spool."""
    known = find_producer(folder)
    if known is None:
        raise _no_spool(folder)
    return known


def require_producer_named(folder: Path, producer: str) -> None:
    """`Refused` if the folder is no spool, or holds the entries of another producer."""
    _require_same(folder, require_producer(folder), producer)


def _require_same(folder: Path, known: str, producer: str) -> None:
    if producer != known:
        raise Refused(
            f"the spool {folder} holds entries for producer {known}, not {producer}.",
            code="ZT903",
            why="Entries drained half into one producer and half into another would be taken twice.",
            tries=["a folder for each producer"],
        )


def list_segments(folder: Path) -> list[SegmentFile]:
    """The segment files, oldest first."""
    names = sorted(name for name in os.listdir(folder) if _SEGMENT_FORM.fullmatch(name))
    return [SegmentFile(folder / name, int(name.removesuffix(SUFFIX))) for name in names]


def segment_path(folder: Path, first_sequence: int) -> Path:
    """Where the segment lies that begins with a sequence."""
    return folder / f"{first_sequence:020d}{SUFFIX}"


def read_drained(folder: Path) -> int:
    """The last sequence that is noted as drained; 0 when there is no note that can be believed."""
    try:
        content = (folder / _DRAINED).read_bytes()
    except FileNotFoundError:
        return 0
    said = _DRAINED_FORM.fullmatch(content)
    return int(said[1]) if said and int(said[2], 16) == crc32(said[1]) else 0


def note_drained(folder: Path, sequence: int, *, durably: bool) -> None:
    """Note how far it is drained; never ahead of the truth, and behind it only after a loss of power."""
    digits = b"%020d" % sequence
    content = b"%s %08x\n" % (digits, crc32(digits))
    if durably:
        write_durably(folder / _DRAINED, content)
    else:
        new = folder / f"{_DRAINED}.new"
        private.write_file(new, content)
        new.replace(folder / _DRAINED)


def write_durably(path: Path, content: bytes) -> None:
    """The file has this content, or the one before, whatever happens."""
    new = path.with_name(f"{path.name}.new")
    with private.open_file(new, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _no_spool(folder: Path) -> Refused:
    return Refused(f"there is no spool in {folder}.", code="ZT902", tries=["zerotail spool status FOLDER"])
