"""A durable queue on the local disk, for a service that has no instruction table.

    from zerotail import Spool

    with Spool("queue", "cards", config="zerotail.yaml") as spool:
        spool.put("c-4711", {"account": "a17", "amount": -1250}, partition=0)

1. `put` returns when the entry is on the disk: `fsync` has returned, for this entry or for a group with it.
2. An entry stays until its instruction is behind the gate; its identifier makes sure that it is stored there once.
3. The queue is bounded. When it is full, `put` waits or refuses; nothing is ever dropped to make room.
4. One process uses a folder, with as many threads as it likes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self
from weakref import WeakSet

from zerotail.core.identity import ProducerName
from zerotail.core.intake import MOST_ID_BYTES, too_large
from zerotail.errors import Misused, Refused, Unavailable, Unfinished, ZerotailError
from zerotail.handler import Value, encode_value
from zerotail.spool import folder as place
from zerotail.spool.commit import EndedError, FullError, Group, GroupCommit, wait_for
from zerotail.spool.frame import MOST_PARTITION, Entry, encode_entry
from zerotail.spool.reading import Reader
from zerotail.spool.store import Failed, NotStored, SegmentStore

if TYPE_CHECKING:
    from zerotail.spool.drain import Draining

LEAST_LIMIT_BYTES = 64 * 1024
_SEGMENTS = 8
"""At least so many files share the limit, so that removing one makes room."""
_MOST_SEGMENT_BYTES = 16 * 1024 * 1024
_FOR_EVER_SECONDS = 1e8
_CLOSED = "it is closed"
_FORKED = "it belongs to the process that this one was forked from"
_every_spool: WeakSet[Spool] = WeakSet()


class Receipt:
    """An entry on its way to the disk."""

    __slots__ = ("_group", "_place", "_spool")

    def __init__(self, spool: Spool, group: Group, place: int) -> None:
        self._spool = spool
        self._group = group
        self._place = place

    def wait(self) -> int:
        """Return when the entry is on the disk: its sequence. Raises as `Spool.put` does."""
        try:
            wait_for(self._group)
        except NotStored as error:
            raise Refused(
                f"the spool {self._spool.folder} could not store an entry: {error}; nothing of it is there.",
                code="ZT904",
                tries=[f"df {self._spool.folder}    # is the disk full?"],
            ) from error
        except Failed as error:
            raise Unfinished(
                f"nobody knows whether an entry of the spool {self._spool.folder} is stored: {error}.",
                code="ZT906",
                why="Open the spool anew, and put it again under the same identifier; it is never taken twice.",
            ) from error
        return self._group.first_sequence + self._place


class Spool:
    """The queue in one folder; its methods may be called from any thread.

    With a configuration it is drained as long as it is open, into whichever site is active.
    """

    def __init__(
        self,
        folder: str | Path,
        producer: str | None = None,
        *,
        config: str | Path | None = None,
        limit_bytes: int = 1024**3,
        when_full: Literal["block", "refuse"] = "block",
    ) -> None:
        if limit_bytes < LEAST_LIMIT_BYTES:
            raise Misused(f"a spool needs {LEAST_LIMIT_BYTES} bytes at least, not {limit_bytes}.", code="ZT909")
        if when_full not in ("block", "refuse"):
            raise Misused(f"a full spool can block or refuse, not {when_full!r}.", code="ZT909")
        self.folder = Path(folder).resolve()
        self.limit_bytes = limit_bytes
        self._when_full = when_full
        if producer is not None:
            place.make_folder(self.folder)
        else:
            place.require_producer(self.folder)
        self._lock = place.FolderLock(self.folder)
        try:
            self.producer = place.claim_folder(self.folder, producer)
            self._store = SegmentStore(self.folder, min(limit_bytes // _SEGMENTS, _MOST_SEGMENT_BYTES))
        except BaseException:
            self._lock.release()
            raise
        self._reader = Reader(self._store)
        self._arrived = Condition()
        self._unfit = ""
        self._commit = GroupCommit(self._make_durable, lambda: self._store.used_bytes, limit_bytes)
        self._draining: Draining | None = None
        self._partitions = MOST_PARTITION + 1
        _every_spool.add(self)
        if config is not None:
            self._draining, self._partitions = _begin_draining(self, config)

    @property
    def waiting(self) -> int:
        """Entries that are durable here and not yet behind the gate."""
        return self._store.last_sequence - self._store.drained

    @property
    def used_bytes(self) -> int:
        """What the entries take on the disk."""
        return self._store.used_bytes

    @property
    def cut_bytes(self) -> int:
        """What was cut off at the start: the remains of a group that nobody was told of."""
        return self._store.cut_bytes

    @property
    def drain_waits_for(self) -> str:
        """Why the drain does not go on; empty while it does."""
        return self._draining.waits_for if self._draining else ""

    def put(
        self, identifier: str, value: Value, *, partition: int = 0, patience_seconds: float = _FOR_EVER_SECONDS
    ) -> int:
        """Return when the entry is on the disk: its sequence.

        `Refused` and `Unavailable` (no room in time): it is certainly not there. `Unfinished`: nobody knows; put it
        again under the same identifier once the spool is opened anew.
        """
        return self._begin([self._encoded(identifier, value, partition)], patience_seconds).wait()

    def put_soon(
        self, identifier: str, value: Value, *, partition: int = 0, patience_seconds: float = _FOR_EVER_SECONDS
    ) -> Receipt:
        """Begin to put, and go on; the entry is on the disk when `wait()` of the receipt has returned, not before."""
        return self._begin([self._encoded(identifier, value, partition)], patience_seconds)

    def put_many(
        self, entries: Iterable[tuple[str, Value, int]], *, patience_seconds: float = _FOR_EVER_SECONDS
    ) -> int:
        """All of `(identifier, value, partition)`, or none: the sequence of the first."""
        encoded = [self._encoded(*entry) for entry in entries]
        if not encoded:
            raise Misused("there is nothing to put.", code="ZT909")
        return self._begin(encoded, patience_seconds).wait()

    def read(self, after: int, *, most_entries: int, most_bytes: int) -> list[Entry]:
        """Durable entries behind a sequence, in order."""
        return self._reader.read(after, most_entries, most_bytes)

    def wait_for_entries(self, after: int, seconds: float) -> bool:
        """Whether there are entries behind a sequence, now or within some seconds."""
        with self._arrived:
            return self._arrived.wait_for(lambda: self._store.last_sequence > after, seconds)

    def release(self, sequence: int) -> None:
        """Everything up to a sequence is behind the gate, and need not be kept any longer."""
        self._store.release(sequence)
        self._commit.look_for_room()

    @property
    def drained(self) -> int:
        """The last sequence that is behind the gate."""
        return self._store.drained

    def close(self) -> None:
        """Store what is on its way, end the drain, let others have the folder."""
        if self._unfit in (_CLOSED, _FORKED):
            return
        self._commit.end()
        if self._draining is not None:
            self._draining.end()
        self._unfit = _CLOSED
        self._store.close()
        self._lock.release()
        _every_spool.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, entries: list[bytes], patience_seconds: float) -> Receipt:
        if self._unfit:
            raise self._takes_nothing()
        size = sum(map(len, entries))
        try:
            group, number = self._commit.join(entries, size, patience_seconds if self._when_full == "block" else 0.0)
        except FullError as full:
            raise self._full(size, full.free_bytes) from full
        except EndedError as ended:
            raise self._takes_nothing() from ended
        return Receipt(self, group, number)

    def _make_durable(self, entries: Sequence[bytes]) -> int:
        """Called for one group at a time."""
        if self._unfit:
            raise NotStored(self._unfit)
        try:
            first = self._store.append(entries)
        except Failed as failure:
            self._unfit = str(failure)
            raise
        with self._arrived:
            self._arrived.notify_all()
        return first

    def _full(self, size: int, free_bytes: int) -> ZerotailError:
        waited = self._when_full == "block" and size <= self.limit_bytes
        waits_for = f" The drain waits: {self.drain_waits_for}." if self.drain_waits_for else ""
        return (Unavailable if waited else Refused)(
            f"the spool {self.folder} is full: {free_bytes} of {self.limit_bytes} bytes are free, {size} are needed.",
            code="ZT908" if waited else "ZT907",
            why=f"{self.waiting} entries wait to be drained; none is dropped to make room.{waits_for}",
            tries=[f"zerotail spool status {self.folder}"],
        )

    def _encoded(self, identifier: str, value: Value, partition: int) -> bytes:
        return _encoded(identifier, value, partition, self._partitions)

    def _takes_nothing(self) -> Refused:
        return Refused(
            f"the spool {self.folder} takes nothing more: {self._unfit or _CLOSED}.",
            code="ZT910",
            tries=["open it anew: what was acknowledged is there"],
        )

    def _forked(self) -> None:
        self._unfit = _FORKED
        self._lock.leave_to_parent()


def _begin_draining(spool: Spool, config: str | Path) -> tuple[Draining, int]:
    """What drains it, and how many partitions its producer has."""
    # A spool that is only filled, or drained by the command, needs none of these.
    from zerotail.config import load
    from zerotail.spool.drain import Draining
    from zerotail.spool.sites import Sites

    try:
        configuration = load(config)
        known = configuration.producers.get(ProducerName(spool.producer))
        partitions = MOST_PARTITION + 1 if known is None else configuration.topics[known.topic].partitions
        return Draining(spool, Sites.of(configuration)), partitions
    except BaseException:
        spool.close()
        raise


def _encoded(identifier: str, value: Value, partition: int, partitions: int) -> bytes:
    name = identifier.encode()
    if not 0 < len(name) <= MOST_ID_BYTES or b"\0" in name:
        raise Misused(
            f"an identifier has 1 to {MOST_ID_BYTES} bytes, none of them zero; this one has {len(name)}.", code="ZT909"
        )
    if not 0 <= partition < partitions:
        raise Misused(
            f"there is no partition {partition}: there are {partitions} partitions, counted from 0.", code="ZT909"
        )
    content = value if isinstance(value, bytes) else encode_value(value)
    if unfit := too_large(len(content)):
        raise Misused(f"{unfit}.", code="ZT909")
    return encode_entry(name, partition, time.time_ns() // 1000, content)


def _leave_spools_to_parent() -> None:
    for spool in list(_every_spool):
        spool._forked()


os.register_at_fork(after_in_child=_leave_spools_to_parent)
