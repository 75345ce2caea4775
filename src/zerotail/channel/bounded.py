"""HTTP connections whose answers have an end: so many bytes at most, all of them by a deadline.

A time-out of a socket is one for each read: whoever sends a byte from time to time would be listened to for ever.
"""

from __future__ import annotations

import http.client
import io
import socket
from functools import partial
from typing import Any

from zerotail.deadline import Deadline

MOST_ANSWER_BYTES = 4_000_000
"""Of an answer with its headers. One for 10,000 messages, the most that a request may carry, has a tenth of it."""
_SHORTEST_SECONDS = 0.001


class EndlessAnswerError(OSError):
    """More came than any answer has."""


class BoundedConnection(http.client.HTTPConnection):
    """Over a socket."""

    deadline = Deadline.after(0.0)
    """By when what is asked next is answered."""

    def request(self, *args: Any, **named: Any) -> None:
        """As every connection does it, within the deadline."""
        if self.sock is not None:
            self.sock.settimeout(max(_SHORTEST_SECONDS, self.deadline.seconds_left))
        super().request(*args, **named)

    def getresponse(self) -> http.client.HTTPResponse:
        """The answer; whoever reads it reads no longer than until the deadline."""
        self.response_class = partial(_BoundedResponse, self.deadline)  # type: ignore[assignment]
        return super().getresponse()


class BoundedTlsConnection(http.client.HTTPSConnection, BoundedConnection):
    """Over TLS."""


class _BoundedResponse(http.client.HTTPResponse):
    def __init__(self, deadline: Deadline, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_BoundedReading(sock, deadline))


class _BoundedReading(io.RawIOBase):
    """What comes from a socket, with an end."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._socket = sock
        self._raw: Any = sock.makefile("rb", buffering=0)
        self._deadline = deadline
        self._left = MOST_ANSWER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise EndlessAnswerError(f"its answer has more than {MOST_ANSWER_BYTES} bytes")
        if self._deadline.passed:
            raise TimeoutError("its answer took too long")
        self._socket.settimeout(max(_SHORTEST_SECONDS, self._deadline.seconds_left))
        read: int = self._raw.readinto(buffer) or 0
        self._left -= read
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()
