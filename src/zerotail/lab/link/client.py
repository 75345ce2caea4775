"""`LinkControl`: how a drill or a command speaks to a running link, from any process.

Each call is a connection of its own, so that nothing has to be kept between two commands.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

import msgspec

from zerotail.deadline import Deadline
from zerotail.errors import Broken, Misused, Unavailable, Unfinished
from zerotail.lab.link.protocol import (
    BOTH,
    DEFAULT_HOLD_LIMIT_BYTES,
    Answer,
    AskStatus,
    Cut,
    CutMode,
    Declined,
    Delay,
    Done,
    Heal,
    Hold,
    LinkStatus,
    Release,
    Request,
    Throttle,
)

_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


@dataclass(frozen=True, slots=True)
class LinkControl:
    """The control port of one link.

    `Unavailable` means that the link was not reached, `Unfinished` that it did not answer after it was asked,
    `Misused` that it declined. Every command may be repeated.
    """

    port: int

    def status(self, *, deadline: Deadline) -> LinkStatus:
        """The state of the link."""
        return self._ask(AskStatus(), deadline).status

    def delay(self, latency_ms: float, direction: str = BOTH, *, deadline: Deadline) -> Done:
        """Let every byte arrive so much later; 0 ends it."""
        return self._ask(Delay(latency_ms=latency_ms, direction=direction), deadline)

    def cut(self, direction: str = BOTH, mode: CutMode = CutMode.HANG, *, deadline: Deadline) -> Done:
        """Let nothing through, by silence or by resets."""
        return self._ask(Cut(direction=direction, mode=mode), deadline)

    def heal(self, direction: str = BOTH, *, deadline: Deadline) -> Done:
        """End a cut."""
        return self._ask(Heal(direction=direction), deadline)

    def hold(self, direction: str = BOTH, *, limit_bytes: int = DEFAULT_HOLD_LIMIT_BYTES, deadline: Deadline) -> Done:
        """Take bytes in and deliver none."""
        return self._ask(Hold(direction=direction, limit_bytes=limit_bytes), deadline)

    def release(self, direction: str = BOTH, *, deadline: Deadline) -> Done:
        """Deliver what was held, and hold no more."""
        return self._ask(Release(direction=direction), deadline)

    def throttle(self, bytes_per_second: int | None, direction: str = BOTH, *, deadline: Deadline) -> Done:
        """Let so many bytes a second pass; None ends it."""
        return self._ask(Throttle(bytes_per_second=bytes_per_second, direction=direction), deadline)

    def _ask(self, request: Request, deadline: Deadline) -> Done:
        match self._exchange(request, deadline):
            case Done() as done:
                return done
            case Declined(error=error):
                raise Misused(f"the link declined: {error}")

    def _exchange(self, request: Request, deadline: Deadline) -> Answer:
        try:
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=_patience(deadline))
        except OSError as error:
            raise Unavailable(f"the link's control port {self.port} does not answer: {error}") from error
        with connection:
            try:
                connection.sendall(msgspec.json.encode(request) + b"\n")
                line = _read_line(connection, deadline)
            except OSError as error:
                raise _unanswered(request, self.port, str(error)) from error
        if not line.endswith(b"\n"):
            raise _unanswered(request, self.port, "it closed the connection")
        try:
            return _answers.decode(line)
        except msgspec.MsgspecError as error:
            raise Broken(f"port {self.port} is not the control port of a link: {error}") from error


def _read_line(connection: socket.socket, deadline: Deadline) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        connection.settimeout(_patience(deadline))
        piece = connection.recv(65536)
        if not piece:
            break
        line += piece
    return bytes(line)


def _patience(deadline: Deadline) -> float:
    # A timeout of zero would mean "do not wait" to a socket and fail even when the answer is there.
    return max(0.001, deadline.seconds_left)


def _unanswered(request: Request, port: int, reason: str) -> Unavailable | Unfinished:
    sentence = f"the link's control port {port} gave no answer: {reason}"
    return Unavailable(sentence) if isinstance(request, AskStatus) else Unfinished(sentence)
