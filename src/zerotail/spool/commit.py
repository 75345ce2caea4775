"""Group commit: threads that put at the same time share one `fsync`; and there is room for so much, no more.

    put ─┐                                       ┌─> told
    put ─┼─> open group ─> closed ─> on the disk ┼─> told     while one group is on its way to the disk,
    put ─┘      ^                                └─> told     the next one gathers those who come meanwhile
                └─── put, put, put …

1. One thread of its own takes the open group, stores it and tells whoever waits. No caller ever works for another: one
   that is interrupted leaves, and harms nobody.
2. Those who wait stand in line at one lock and let each other through: woken all at once they would fight over the
   interpreter.
3. Whoever was told is likely to come again. A group that is smaller than the last one is waited for, for a moment and
   no longer than the last one took; a lonely thread never waits.
4. Room is taken when an entry joins a group, so that a group always fits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Condition, Lock, Thread

from zerotail.deadline import Deadline
from zerotail.spool.frame import GROUP_BYTES

Store = Callable[[Sequence[bytes]], int]
"""Makes entries durable; answers the sequence of the first."""
_LOOK_SECONDS = 0.000_1
_MOMENT_SECONDS = 0.002


class EndedError(Exception):
    """Nothing is stored any more."""


class FullError(Exception):
    """There is no room, or was none in time; `free_bytes` are left."""

    def __init__(self, free_bytes: int) -> None:
        super().__init__(free_bytes)
        self.free_bytes = max(0, free_bytes)


class Group:
    """Entries that become durable together."""

    __slots__ = ("bytes", "entries", "failure", "first_sequence", "settled")

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.bytes = 0
        self.first_sequence = 0
        self.failure: Exception | None = None
        self.settled = Lock()
        self.settled.acquire()


class GroupCommit:
    """Gathers entries into groups and has them stored, one group at a time."""

    def __init__(self, store: Store, used_bytes: Callable[[], int], limit_bytes: int) -> None:
        self._store = store
        self._used_bytes = used_bytes
        self._limit_bytes = limit_bytes
        self._lock = Lock()
        self._room = Condition(self._lock)
        self._open = Group()
        self._storing: Group | None = None
        self._free_bytes = limit_bytes - used_bytes()
        self._begun: SimpleQueue[Group | None] = SimpleQueue()
        self._ended = False
        self._thread = Thread(target=self._run, name="zerotail spool", daemon=True)
        self._thread.start()

    def join(self, entries: Sequence[bytes], size: int, patience_seconds: float) -> tuple[Group, int]:
        """The group that the entries will be stored with, and their place in it. `FullError` when there is no room."""
        size += GROUP_BYTES
        with self._lock:
            if size > self._free_bytes:
                self._wait_for_room(size, patience_seconds)
            if self._ended:
                raise EndedError
            group = self._open
            place = len(group.entries)
            group.entries.extend(entries)
            group.bytes += size
            self._free_bytes -= size
            if place == 0:
                self._begun.put(group)
        return group, place

    def look_for_room(self) -> None:
        """Something was removed: let those go on who wait for room."""
        with self._lock:
            self._count_room()

    def end(self) -> None:
        """Store what has gathered, and take nothing more."""
        with self._lock:
            self._ended = True
            self._room.notify_all()
        self._begun.put(None)
        self._thread.join()

    def _wait_for_room(self, size: int, patience_seconds: float) -> None:
        deadline = Deadline.after(patience_seconds)
        while size > self._free_bytes and not self._ended:
            if size > self._limit_bytes or deadline.passed:
                raise FullError(self._free_bytes)
            self._room.wait(deadline.seconds_left)

    def _count_room(self) -> None:
        pending = self._open.bytes + (self._storing.bytes if self._storing else 0)
        self._free_bytes = self._limit_bytes - self._used_bytes() - pending
        self._room.notify_all()

    def _run(self) -> None:
        last_count, last_seconds = 0, 0.0
        while (group := self._begun.get()) is not None:
            began = time.monotonic()
            while len(group.entries) < last_count and time.monotonic() - began < last_seconds:
                time.sleep(_LOOK_SECONDS)
            with self._lock:
                self._storing, self._open = group, Group()
            began = time.monotonic()
            try:
                group.first_sequence = self._store(group.entries)
            except Exception as failure:  # noqa: BLE001 - whatever it is, those who wait must hear it
                group.failure = failure
            last_count, last_seconds = len(group.entries), min(time.monotonic() - began, _MOMENT_SECONDS)
            with self._lock:
                self._storing = None
                self._count_room()
            group.settled.release()


def wait_for(group: Group) -> None:
    """Return when a group is durable; raises what the store raised."""
    with group.settled:  # opens when the group is settled; leaving it lets the next one through
        pass
    if group.failure is not None:
        raise group.failure
