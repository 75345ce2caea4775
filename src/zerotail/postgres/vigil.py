"""Whoever waits for a server's answer is freed: after a time of its own, or as soon as the server is gone.

A host that loses power, or a firewall that begins to drop packets, says nothing: without this a process waits for as
long as its kernel does, up to two hours. A statement may well take minutes, so its length says nothing either. Hence:

1. `cut_when_gone`: when an answer has not come for a few seconds, the address that the session is connected to is asked
   the shortest question that PostgreSQL knows (may we speak TLS?). Any answer, and the wait goes on and is looked at
   again; none, and the connection is cut: whoever waits on it gets an error at once. That is noticed within
   `QUIET_SECONDS + ANSWER_SECONDS`, also where the host's kernel still acknowledges what a frozen server never reads.
2. `cut_after`: the block has so many seconds, whatever the server does.

One thread looks after all waits of a process; it is made with the first one, and anew in a forked process. No block is
cut once it has been left.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, Thread

import psycopg
from psycopg.rows import TupleRow

Connection = psycopg.Connection[TupleRow]

QUIET_SECONDS = 4.0
ANSWER_SECONDS = 4.0
_MAY_WE_SPEAK_TLS = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""PostgreSQL's SSLRequest; the answer is one letter, from every server and every proxy in front of one."""


@dataclass(slots=True, eq=False)
class _Wait:
    """Somebody waits on this wire."""

    wire: socket.socket
    due: float
    """When something is to be done about it, in monotonic seconds."""
    address: tuple[str, int] | None
    """Who is asked then; None: the wire is cut at once."""


class _Watch:
    """All waits of this process, and the thread that looks after them."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self._changed = Condition()
        self._waits: set[_Wait] = set()
        self._wakes_at = math.inf
        self._thread: Thread | None = None  # a forked process has none

    def add(self, wait: _Wait) -> None:
        with self._changed:
            self._waits.add(wait)
            if self._thread is None:
                self._thread = Thread(target=self._look_after, name="zerotail vigil", daemon=True)
                self._thread.start()
            elif wait.due < self._wakes_at:  # seldom: who waits as long as the others is due behind them
                self._changed.notify()

    def remove(self, wait: _Wait) -> None:
        with self._changed:
            self._waits.discard(wait)

    def _look_after(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for wait in [one for one in self._waits if one.due <= now]:
                    wait.due = math.inf
                    if wait.address is None:
                        _cut(wait.wire)
                    else:
                        Thread(target=self._ask, args=(wait, wait.address), daemon=True).start()
                self._wakes_at = min((one.due for one in self._waits), default=math.inf)
                self._changed.wait(None if self._wakes_at == math.inf else max(0.0, self._wakes_at - now))

    def _ask(self, wait: _Wait, address: tuple[str, int]) -> None:
        there = says_anything(address, ANSWER_SECONDS)
        with self._changed:
            if wait not in self._waits:
                return
            if there:
                wait.due = time.monotonic() + QUIET_SECONDS
                self._changed.notify()
            else:
                _cut(wait.wire)


_watch = _Watch()
os.register_at_fork(after_in_child=_watch.begin_anew)


@contextmanager
def cut_after(connection: Connection, seconds: float | None) -> Iterator[None]:
    """Cut the connection when the block takes longer than `seconds`; whoever waits on it then gets an error."""
    if seconds is None:
        yield
    else:
        with _watched(connection.fileno(), seconds, None):
            yield


@contextmanager
def cut_when_gone(connection: Connection) -> Iterator[None]:
    """Cut the connection when the server on its other end says nothing any more; however long the block takes."""
    info = connection.info
    try:
        # The very server, not whatever its name stands for by now; of a socket in a folder there is the path only.
        address = (info.host if info.host.startswith("/") else info.hostaddr, info.port)
    except AttributeError:  # a libpq before version 12
        address = (info.host, info.port)
    with _watched(connection.fileno(), QUIET_SECONDS, address):
        yield


@contextmanager
def cut_wire_when_gone(descriptor: int | None, address: tuple[str, int]) -> Iterator[None]:
    """The same for a client that is not psycopg, by the descriptor of its socket; None: nobody knows it, and only the
    kernel watches.
    """
    if descriptor is None:
        yield
    else:
        with _watched(descriptor, QUIET_SECONDS, address):
            yield


@contextmanager
def _watched(descriptor: int, seconds: float, address: tuple[str, int] | None) -> Iterator[None]:
    # A descriptor of its own: the connection may be closed inside the block, and its number given to another one.
    with socket.socket(fileno=os.dup(descriptor)) as wire:
        wait = _Wait(wire, time.monotonic() + seconds, address)
        _watch.add(wait)
        try:
            yield
        finally:
            _watch.remove(wait)


def says_anything(address: tuple[str, int], seconds: float) -> bool:
    """Whether a server at this address answers anything at all, within so many seconds."""
    host, port = address
    until = time.monotonic() + seconds
    with suppress(OSError):
        if host.startswith("/"):
            wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            wire.settimeout(seconds)
            wire.connect(f"{host}/.s.PGSQL.{port}")
        else:
            wire = socket.create_connection((host, port), seconds)
        with wire:
            wire.settimeout(max(0.05, until - time.monotonic()))
            wire.sendall(_MAY_WE_SPEAK_TLS)
            return bool(wire.recv(1))
    return False


def _cut(wire: socket.socket) -> None:
    with suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
