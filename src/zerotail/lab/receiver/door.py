"""A port of the receiver: who comes in is served, and the door can be shut for a while."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from zerotail.lab.loopback import bind_loopback
from zerotail.lab.receiver.http import MAX_HEAD_BYTES, Handler, refuse_connection, serve_connection

_MAX_CONNECTIONS = 128
_BACKLOG = 256


class Door:
    """Owns its port at once, listens after `open`. `on_failure` is told of errors that are ours."""

    def __init__(
        self, port: int, handler: Handler, max_body_bytes: int, on_failure: Callable[[BaseException], None]
    ) -> None:
        self._socket = bind_loopback(port)
        self._handler = handler
        self._max_body_bytes = max_body_bytes
        self._on_failure = on_failure
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, None] = {}

    async def open(self) -> None:
        """Let connections in."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._serve, sock=self._socket.dup(), limit=MAX_HEAD_BYTES, backlog=_BACKLOG
            )

    def shut(self) -> None:
        """End every connection, and have the kernel refuse new ones while the port stays ours."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket.shutdown(socket.SHUT_RD)
        for writer in list(self._connections):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = None
        try:
            with contextlib.suppress(ConnectionError):
                if len(self._connections) > _MAX_CONNECTIONS:
                    await refuse_connection(reader, writer, f"there are {_MAX_CONNECTIONS} connections already")
                else:
                    await serve_connection(reader, writer, self._handler, self._max_body_bytes)
        except Exception as error:  # noqa: BLE001  (handed on: it ends the process)
            self._on_failure(error)
        finally:
            del self._connections[writer]
            writer.close()
