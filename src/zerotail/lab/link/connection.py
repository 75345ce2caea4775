"""One connection through the link: two sockets and the two lanes between them.

The lanes live and end independently, so a half-closed connection goes on in its other direction. When a
socket is lost, the other one learns it through the lane that leads there, as late as that lane is, and then
by a reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from errno import EINPROGRESS

from zerotail.lab.link.lane import Count, Lane, SourceEnd
from zerotail.lab.link.way import Way

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: closing sends RST."""


class Connection:
    """Begins with an accepted socket; `on_end` is called once, when both sockets are closed."""

    def __init__(
        self,
        client: socket.socket,
        target_port: int,
        outward: tuple[Way, Count],
        homeward: tuple[Way, Count],
        *,
        on_end: Callable[[Connection, bool], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._client = client
        self._server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._outward = outward
        self._homeward = homeward
        self._on_end = on_end
        self._lanes: tuple[Lane, Lane] | None = None
        self._lanes_open = 2
        self._is_open = True
        for side in (self._client, self._server):
            side.setblocking(False)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._server.connect_ex(("127.0.0.1", target_port)) == EINPROGRESS:
            self._loop.add_writer(self._server, self._begin)
        else:
            self._loop.call_soon(self._begin)

    def reconsider(self) -> None:
        """Obey what the ways say now."""
        for lane in self._lanes or ():
            if self._is_open:
                lane.reconsider()

    def reset(self) -> None:
        """End both sides at once with a reset; what still waited is lost."""
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        """End both sides."""
        if not self._is_open:
            return
        self._is_open = False
        for lane in self._lanes or ():
            lane.close()
        self._loop.remove_writer(self._server)
        self._client.close()
        self._server.close()
        self._on_end(self, self._lanes is not None)

    def _begin(self) -> None:
        """The target has answered: with a connection, or not."""
        if not self._is_open:
            return
        self._loop.remove_writer(self._server)
        if self._server.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or not _is_connected(self._server):
            self.reset()
            return
        self._lanes = (
            self._lane(self._outward, self._client, self._server, 0),
            self._lane(self._homeward, self._server, self._client, 1),
        )
        self.reconsider()

    def _lane(self, course: tuple[Way, Count], source: socket.socket, target: socket.socket, index: int) -> Lane:
        def lose_target() -> None:
            assert self._lanes is not None  # noqa: S101  (a lane that sends has a twin)
            twin = self._lanes[1 - index]
            if twin.is_closed:
                self.reset()
            else:
                twin.end_source(SourceEnd.LOST)

        def end(how: SourceEnd) -> None:
            self._end_lane(how, target)

        return Lane(*course, source, target, on_source_end=end, on_target_lost=lose_target)

    def _end_lane(self, how: SourceEnd, target: socket.socket) -> None:
        if how is SourceEnd.LOST:
            self.reset()
            return
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        self._lanes_open -= 1
        if self._lanes_open == 0:
            self.close()


def _is_connected(side: socket.socket) -> bool:
    try:
        side.getpeername()
    except OSError:
        return False
    return True
