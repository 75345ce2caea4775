"""A way to a server over which, from some moment on, nothing comes any more: a host that has vanished.

The kernel of the relay goes on to acknowledge what is sent, and takes new connections: nobody is told by a reset, a
refusal or a missing acknowledgement. That is the harder half of a vanished host; the other half is the kernel's own.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread


class Relay:
    """To one server; `vanish` and `come_back` as often as wanted."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._there = Event()
        self._there.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def vanish(self) -> None:
        """From now on nothing is passed on, in either direction, nor is anybody let in."""
        self._there.clear()

    def come_back(self) -> None:
        """What was kept is passed on."""
        self._there.set()

    def close(self) -> None:
        self._there.set()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._there.wait()
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as server:
            back = Thread(target=self._pass_on, args=(server, client), daemon=True)
            back.start()
            self._pass_on(client, server)
            back.join()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while said := source.recv(65_536):
                self._there.wait()
                sink.sendall(said)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    """A relay for the length of a block."""
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()
