"""One direction of one connection: bytes come from a source, wait as long as the way says, go to a target.

Each piece is stamped on arrival with the moment at which it is due, and leaves from the head of a queue. A
delay therefore costs time but no throughput: the second piece does not wait for the first one to arrive. The
end of the stream, clean or by a reset, takes its place behind the last byte and is delayed, held and cut like
the bytes are.

1. Bytes arrive unchanged, in order, each once.
2. A lane keeps no more than its way gives it room for; then it stops reading, and the sender's own buffers
   fill.
3. While a way is cut, nothing is read and nothing written: neither end learns anything, not even that the
   other died.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice, takewhile

from zerotail.lab.link.way import Way

_READ_BYTES = 256 * 1024
_MAX_PIECES = 32 * 1024
"""Bounds what many tiny pieces cost beside their bytes."""
_PIECES_PER_SEND = 64

# One thread and no `await` between reading and sending: all lanes can read into the same memory.
_arrival = memoryview(bytearray(_READ_BYTES))


class SourceEnd(Enum):
    """How a source ended: it said so, or it was lost."""

    CLOSED = auto()
    LOST = auto()


@dataclass(slots=True)
class Count:
    """Bytes of one forward in one direction."""

    delivered_bytes: int = 0
    held_bytes: int = 0


class Lane:
    """See the module. The callbacks tell the connection what this lane cannot decide alone."""

    def __init__(
        self,
        way: Way,
        count: Count,
        source: socket.socket,
        target: socket.socket,
        *,
        on_source_end: Callable[[SourceEnd], None],
        on_target_lost: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._way = way
        self._count = count
        self._source = source
        self._target = target
        self._on_source_end = on_source_end
        self._on_target_lost = on_target_lost
        self._queue: deque[tuple[float, memoryview]] = deque()
        self._waiting_bytes = 0
        self._granted_bytes = 0
        self._granted_at = 0.0
        self._source_end: SourceEnd | None = None
        self._told_end: SourceEnd | None = None
        self._end_due = 0.0
        self.is_closed = False
        self._is_reading = False
        self._is_writing = False
        self._timer: asyncio.TimerHandle | None = None

    def reconsider(self) -> None:
        """Obey what the way says now."""
        self._granted_bytes = 0
        self._deliver()

    def end_source(self, how: SourceEnd) -> None:
        """Nothing more will come; the target learns it behind the last byte."""
        if self._source_end is not how and self._source_end is not SourceEnd.LOST:
            self._source_end = how
            self._end_due = self._loop.time() + self._way.latency_seconds
            self._deliver()

    def close(self) -> None:
        """Let go of the sockets, and of whatever still waits."""
        self.is_closed = True
        self._watch_reading(False)
        self._watch_writing(False)
        self._wake_at(None)
        self._note(delivered_bytes=0, held_bytes=-self._waiting_bytes)
        self._queue.clear()

    def _take(self) -> None:
        """Read once, and pass on at once if nothing is in the way."""
        size = min(_READ_BYTES, self._way.room_bytes(self._waiting_bytes))
        if size == 0:  # another lane of a held way has taken the last room
            self._watch_reading(False)
            return
        try:
            count = self._source.recv_into(_arrival, size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.end_source(SourceEnd.LOST)
            return
        if count == 0:
            self.end_source(SourceEnd.CLOSED)
            return
        sent = 0
        if not self._queue and self._way.is_plain:
            sent = self._send([_arrival[:count]])
            if sent == count or self.is_closed:
                return
        self._queue.append((self._loop.time() + self._way.latency_seconds, memoryview(bytes(_arrival[sent:count]))))
        self._note(delivered_bytes=0, held_bytes=count - sent)
        self._deliver()

    def _deliver(self) -> None:
        """Send what may leave now, and ask the loop for exactly the events that matter after that."""
        is_full = False
        moment = self._next_departure()
        while moment is not None and moment <= self._loop.time() and not is_full:
            if self._queue:
                is_full = not self._send_due()
            else:
                self._tell_end()
            moment = self._next_departure()
        if self.is_closed:
            return
        self._watch_writing(is_full)
        self._wake_at(None if is_full else moment)
        has_room = self._way.room_bytes(self._waiting_bytes) > 0 and len(self._queue) < _MAX_PIECES
        self._watch_reading(has_room and self._source_end is None)

    def _next_departure(self) -> float | None:
        """When the head of the queue, or the end behind it, may leave; None if nothing may."""
        if self.is_closed or self._way.stands:
            return None
        if not self._queue:
            return None if self._source_end is self._told_end else self._end_due
        due = self._queue[0][0]
        if self._way.bytes_per_second is None:
            return due
        if self._granted_bytes == 0:
            self._granted_bytes, self._granted_at = self._way.reserve(self._waiting_bytes, self._loop.time())
        return max(due, self._granted_at)

    def _send_due(self) -> bool:
        """Send the pieces that are due; False when the target takes no more at the moment."""
        now = self._loop.time()
        # Not all that are due: after a delay was shortened, one may stand behind another that is not.
        due_pieces = takewhile(lambda entry: entry[0] <= now, islice(self._queue, _PIECES_PER_SEND))
        pieces = [piece for _, piece in due_pieces]
        if self._granted_bytes:
            pieces = [pieces[0][: self._granted_bytes]]
        sent = self._send(pieces)
        if self.is_closed:
            return True
        self._granted_bytes = max(0, self._granted_bytes - sent)
        self._note(delivered_bytes=0, held_bytes=-sent)
        whole = sent == sum(map(len, pieces))
        while sent:
            due, piece = self._queue.popleft()
            if len(piece) > sent:
                self._queue.appendleft((due, piece[sent:]))
                break
            sent -= len(piece)
        return whole

    def _send(self, pieces: list[memoryview]) -> int:
        try:
            sent = self._target.sendmsg(pieces)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self.close()
            self._on_target_lost()
            return 0
        self._note(delivered_bytes=sent, held_bytes=0)
        return sent

    def _tell_end(self) -> None:
        self._told_end = self._source_end
        if self._told_end is not None:
            self._on_source_end(self._told_end)

    def _note(self, *, delivered_bytes: int, held_bytes: int) -> None:
        self._waiting_bytes += held_bytes
        for account in (self._way, self._count):
            account.delivered_bytes += delivered_bytes
            account.held_bytes += held_bytes

    def _watch_reading(self, wanted: bool) -> None:
        if wanted and not self._is_reading:
            self._loop.add_reader(self._source, self._take)
        elif self._is_reading and not wanted:
            self._loop.remove_reader(self._source)
        self._is_reading = wanted

    def _watch_writing(self, wanted: bool) -> None:
        if wanted and not self._is_writing:
            self._loop.add_writer(self._target, self._deliver)
        elif self._is_writing and not wanted:
            self._loop.remove_writer(self._target)
        self._is_writing = wanted

    def _wake_at(self, moment: float | None) -> None:
        if self._timer is not None:
            if self._timer.when() == moment:
                return
            self._timer.cancel()
        self._timer = None if moment is None else self._loop.call_at(moment, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._deliver()
