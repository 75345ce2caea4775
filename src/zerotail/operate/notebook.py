"""The operators' notebook: what was begun on this machine and how far it came.

Until a new epoch exists there is no database that could hold it: the survivor's is read-only. So every act has a file
of its own, written whole and forced to disk at each step; with the epoch the steps go into `zerotail.step` too, where
every later operator finds them. The files stay: they are the evidence of who stated what.

One act at a time: the folder is locked while one is under way. The lock goes with the process, however it ends. A copy
of a database may take hours, and is no reason why the active site could not go on alone: while an act copies, it holds
a lock of its own instead, so that others may be under way, but no second one that copies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from zerotail.core.identity import Epoch, Lsn, SiteName
from zerotail.core.takeover import Strategy
from zerotail.errors import Refused
from zerotail.private import make_folder, open_file

STATE_VARIABLE = "ZEROTAIL_STATE"
_COPYING = "copying.lock"


class StepNote(msgspec.Struct, frozen=True):
    """A step that was done."""

    epoch: Epoch
    step: int
    done_at: datetime


class Note(msgspec.Struct, frozen=True):
    """One act, from its beginning on."""

    act: str
    site: SiteName
    other: SiteName
    plan: str
    operator: str
    accepted: tuple[str, ...]
    """What the operator stated, as it was typed."""
    begun_at: datetime
    strategy: Strategy | None = None
    """How a takeover fills the topics; None: nobody has said, it goes by the configuration."""
    rebuild: bool = False
    """Whether it runs the handlers over the restored records."""
    epoch: Epoch = Epoch(0)
    """The one that it was to open, or is in; whoever finishes it opens none below."""
    steps: tuple[StepNote, ...] = ()
    stopped_at: Lsn | None = None
    """The end of the log of a primary that was told to stop: what its standby must hold."""
    tail: str | None = None
    """Where the tail of a replaced database was kept."""
    finished_at: datetime | None = None


def state_folder(name: str, environment: Mapping[str, str]) -> Path:
    """Where notes are kept: ZEROTAIL_STATE, else the user's folder for state, by the configuration's name."""
    if chosen := environment.get(STATE_VARIABLE):
        return Path(chosen)
    base = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "/")) / ".local" / "state"
    return Path(base) / "zerotail" / name


class Notebook:
    """The notes in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = -1

    def find_last(self, acts: tuple[str, ...], site: SiteName | None = None) -> Note | None:
        """The newest note of such an act, finished or not."""
        notes = [note for note in map(_read, self._files()) if note.act in acts and site in (None, note.site)]
        return max(notes, key=lambda note: note.begun_at, default=None)

    def find_unfinished(self, acts: tuple[str, ...], site: SiteName | None = None) -> Note | None:
        """The newest note of such an act, if it is not finished."""
        last = self.find_last(acts, site)
        return last if last is not None and last.finished_at is None else None

    def write(self, note: Note) -> None:
        """Write a note, whole or not at all."""
        path = self.folder / f"{note.begun_at:%Y%m%dT%H%M%S%f}-{note.act}-{note.site}.json"
        scratch = path.with_suffix(".new")
        with open_file(scratch, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the name is on disk, too
        finally:
            os.close(folder)

    @contextmanager
    def locked(self, *, copies: bool = False) -> Iterator[None]:
        """Let one act at a time be under way, and one that copies a database, unless it only copies just now."""
        try:
            make_folder(self.folder)
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            copying = os.open(self.folder / _COPYING, os.O_RDWR | os.O_CREAT, 0o600) if copies else None
        except OSError as error:
            raise Refused(
                f"the folder for notes, {self.folder}, cannot be used: {error.strerror}.",
                code="ZT458",
                why="What is begun must be noted before a database can hold it.",
                tries=["--state FOLDER", f"export {STATE_VARIABLE}=FOLDER"],
            ) from error
        try:
            for lock in (self._lock, copying):
                if lock is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(
                "another takeover, handover or rejoin is under way on this machine.",
                code="ZT455",
                tries=["zerotail takeover status"],
            ) from error
        else:
            yield
        finally:
            for lock in (self._lock, copying):
                if lock is not None:
                    os.close(lock)

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Let other acts be under way for the length of a block, in which a database is copied."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []


def now() -> datetime:
    """The time for a note."""
    return datetime.now(UTC)


def _read(path: Path) -> Note:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError) as error:
        raise Refused(
            f"the note {path} cannot be read: {error}.",
            code="ZT458",
            why="It may be about an act that is not finished.",
            tries=[f"mv {path} {path}.damaged    # if it is not"],
        ) from error
