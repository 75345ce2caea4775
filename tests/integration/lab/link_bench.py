"""A link process with a socket at each of its ends, and what a test does with sockets."""

from __future__ import annotations

import hashlib
import select
import socket
import struct
import subprocess
from dataclasses import dataclass, field

from zerotail.deadline import Deadline
from zerotail.lab.link import LinkControl

EAST_WEST = "east->west"
WEST_EAST = "west->east"
MEGABYTE = 1024 * 1024


@dataclass
class LinkBench:
    """A link with one forward in each direction, and a listening socket behind each."""

    control: LinkControl
    process: subprocess.Popen[bytes]
    ports: dict[str, int]
    targets: dict[str, socket.socket]
    deadline: Deadline
    opened: list[socket.socket] = field(default_factory=list)

    def call(self, way: str = EAST_WEST) -> socket.socket:
        """Connect through the link, without asking whether the target noticed."""
        client = socket.create_connection(("127.0.0.1", self.ports[way]), timeout=self.deadline.seconds_left)
        self.opened.append(client)
        return client

    def answer(self, way: str = EAST_WEST) -> socket.socket:
        """The target's end of the next connection."""
        self.targets[way].settimeout(self.deadline.seconds_left)
        server, _ = self.targets[way].accept()
        server.settimeout(self.deadline.seconds_left)
        self.opened.append(server)
        return server

    def connect(self, way: str = EAST_WEST) -> tuple[socket.socket, socket.socket]:
        """Both ends of a new connection."""
        client = self.call(way)
        return client, self.answer(way)


def receive(end: socket.socket, count: int) -> bytes:
    """Exactly so many bytes; fewer only if the stream ended."""
    pieces = bytearray()
    while len(pieces) < count and (piece := end.recv(min(MEGABYTE, count - len(pieces)))):
        pieces += piece
    return bytes(pieces)


def digest_of_everything(end: socket.socket) -> str:
    digest = hashlib.sha256()
    while piece := end.recv(MEGABYTE):
        digest.update(piece)
    return digest.hexdigest()


def fill(end: socket.socket) -> int:
    """Send until the way is full; how many bytes it took."""
    end.setblocking(False)
    sent = 0
    while select.select([], [end], [], 0.2)[1]:
        sent += end.send(bytes(65536))
    return sent


def is_silent(end: socket.socket, seconds: float = 0.15) -> bool:
    """Whether nothing arrives for that long: that something does not happen can only be watched."""
    return not select.select([end], [], [], seconds)[0]


def kill(end: socket.socket) -> None:
    """Close with a reset, as the kernel does for a process that died with bytes unread."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
