"""One forwarded port: its listener, its connections, its counters.

A cut shows at the listener too. In mode `hang` the link stops accepting: the kernel still completes the
handshake, and then there is silence. In mode `reset` the socket stops listening while it keeps its port, so
that the kernel refuses.
"""

from __future__ import annotations

import asyncio
import socket
from enum import Enum, auto

from zerotail.lab.link.connection import Connection
from zerotail.lab.link.lane import Count
from zerotail.lab.link.protocol import CutMode, ForwardStatus, Traffic
from zerotail.lab.link.settings import ForwardSettings
from zerotail.lab.link.way import Way
from zerotail.lab.loopback import bind_loopback

_BACKLOG = 1024
_TCP_ESTABLISHED = 1
_PAUSE_WITHOUT_DESCRIPTORS_SECONDS = 0.1


class Door(Enum):
    """What a new connection meets."""

    OPEN = auto()
    SILENT = auto()
    REFUSING = auto()


class Forward:
    """Starts refusing; `reconsider` opens it."""

    def __init__(self, settings: ForwardSettings, outward: Way, homeward: Way) -> None:
        self._loop = asyncio.get_running_loop()
        self._settings = settings
        self._outward = (outward, Count())
        self._homeward = (homeward, Count())
        self._listener = bind_loopback(settings.listen_port)
        self._door = Door.REFUSING
        self._connections: dict[Connection, None] = {}
        self._connections_total = 0
        self._connections_failed = 0

    @property
    def connections_open(self) -> int:
        """How many connections exist now, those that still wait for their target included."""
        return len(self._connections)

    def reconsider(self) -> None:
        """Obey what the ways say now."""
        self._set_door(self._wanted_door())
        for connection in list(self._connections):
            connection.reconsider()

    def reset_connections(self) -> int:
        """Reset every connection; how many there were."""
        count = len(self._connections)
        for connection in list(self._connections):
            connection.reset()
        return count

    def close(self) -> None:
        """Stop listening and end every connection."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for connection in list(self._connections):
            connection.close()

    def status(self) -> ForwardStatus:
        """The state as a value."""
        return ForwardStatus(
            name=self._settings.name,
            listen_port=self._settings.listen_port,
            target_port=self._settings.target_port,
            connections_open=self.connections_open,
            connections_total=self._connections_total,
            connections_failed=self._connections_failed,
            traffic=tuple(
                Traffic(way.direction, count.delivered_bytes, count.held_bytes)
                for way, count in (self._outward, self._homeward)
            ),
        )

    def _wanted_door(self) -> Door:
        # A handshake needs both directions, so one cut direction is enough.
        cuts = {self._outward[0].cut, self._homeward[0].cut}
        if CutMode.RESET in cuts:
            return Door.REFUSING
        return Door.SILENT if CutMode.HANG in cuts else Door.OPEN

    def _set_door(self, door: Door) -> None:
        before, self._door = self._door, door
        if before is door:
            return
        if before is Door.OPEN:
            self._loop.remove_reader(self._listener)
        if door is Door.REFUSING:
            self._listener.shutdown(socket.SHUT_RD)
            return
        if before is Door.REFUSING:
            self._listener.listen(_BACKLOG)
        if door is Door.OPEN:
            self._accept(drop_abandoned=before is Door.SILENT)
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self, *, drop_abandoned: bool = False) -> None:
        """Take what waits at the door.

        Whoever came during a cut and has left again would never have got through on a real line, nor would
        what it said; so that is dropped.
        """
        while True:
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptors left: try again when some may be free
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_WITHOUT_DESCRIPTORS_SECONDS, self._resume_accepting)
                return
            if drop_abandoned and _has_left(client):
                client.close()
                continue
            self._connections_total += 1
            connection = Connection(
                client, self._settings.target_port, self._outward, self._homeward, on_end=self._forget
            )
            self._connections[connection] = None

    def _resume_accepting(self) -> None:
        if self._door is Door.OPEN and self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    def _forget(self, connection: Connection, reached_target: bool) -> None:
        del self._connections[connection]
        self._connections_failed += not reached_target


def _has_left(client: socket.socket) -> bool:
    state: int = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state != _TCP_ESTABLISHED
