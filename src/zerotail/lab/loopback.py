"""The laboratory listens on 127.0.0.1 only, on the ports that its programs are given."""

from __future__ import annotations

import socket

from zerotail.errors import Refused


def bind_loopback(port: int) -> socket.socket:
    """A socket that owns the port and does not listen yet; `Refused` when somebody else has the port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setblocking(False)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise Refused(f"port {port} on 127.0.0.1 cannot be listened on: {error.strerror}") from error
    return listener
