"""As much of HTTP/1.1 as the protocol page promises: keep-alive, `Content-Length`, limits on everything.

A handler gets a whole request and returns an answer, or None to have the connection closed without one. What
is wrong with a request is raised as `Unacceptable` and answered; the connection goes on if it is known where
the next request begins, else it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

import msgspec

from zerotail.lab.receiver.protocol import Problem

MAX_HEAD_BYTES = 16 * 1024
_REQUEST_SECONDS = 30.0
_INSTALLATION = "zerotail-installation"
_LINGER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, read to its end."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    installation: str = ""
    """What the header of that name says."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A status and a JSON body."""

    status: HTTPStatus
    body: bytes
    allow: str = ""
    location: str = ""
    endless: bool = False
    """The body comes again and again, until the other side goes."""
    silent: bool = False
    """Nothing is answered, and the connection is kept until the other side goes."""


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer | None]]


class Unacceptable(Exception):
    """A request that is answered with a sentence; `ends_connection` if what follows cannot be read."""

    def __init__(self, status: HTTPStatus, sentence: str, *, ends_connection: bool = False, allow: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.ends_connection = ends_connection
        self.answer = HttpAnswer(status, msgspec.json.encode(Problem(error=sentence)), allow)


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    query: dict[str, str]
    keeps_alive: bool
    body_bytes: int
    expects_continue: bool
    installation: str


async def serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, max_body_bytes: int
) -> None:
    """Answer the requests of one connection until it ends. The reader's limit must be `MAX_HEAD_BYTES`."""
    keeps_alive = True
    while keeps_alive:
        method = ""
        try:
            received = await _read_request(reader, writer, max_body_bytes)
            if received is None:
                return
            head, body = received
            method, keeps_alive = head.method, head.keeps_alive
            answer = await handler(HttpRequest(head.method, head.path, head.query, body, head.installation))
        except Unacceptable as problem:
            answer, keeps_alive = problem.answer, keeps_alive and not problem.ends_connection
        if answer is None:
            writer.transport.abort()
            return
        if answer.endless or answer.silent:
            await _never_end(reader, writer, answer)
            return
        writer.write(_encode(answer, keeps_alive=keeps_alive, with_body=method != "HEAD"))
        await writer.drain()
    await _linger(reader, writer)


async def _never_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: HttpAnswer) -> None:
    """Be rude for as long as the other side listens."""
    with contextlib.suppress(OSError):
        if answer.silent:
            while await reader.read(65_536):
                pass
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while not writer.is_closing():
                writer.write(b"%x\r\n%s\r\n" % (len(answer.body), answer.body))
                await writer.drain()
    writer.transport.abort()


async def refuse_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sentence: str) -> None:
    """Answer 503 to a connection that is one too many, before it has asked anything."""
    problem = Unacceptable(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
    writer.write(_encode(problem.answer, keeps_alive=False, with_body=True))
    await _linger(reader, writer)


async def _read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_body_bytes: int
) -> tuple[_Head, bytes] | None:
    """The next request; None when the other side has nothing more to say."""
    try:
        async with asyncio.timeout(None) as patience:
            first = await reader.readexactly(1)
            patience.reschedule(asyncio.get_running_loop().time() + _REQUEST_SECONDS)
            head = _parse_head(first + await reader.readuntil(b"\r\n\r\n"), max_body_bytes)
            if head.expects_continue:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return head, await reader.readexactly(head.body_bytes)
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise _unreadable(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a head has at most {MAX_HEAD_BYTES} bytes"
        ) from None
    except TimeoutError:
        raise _unreadable(
            HTTPStatus.REQUEST_TIMEOUT, f"the request was not finished within {_REQUEST_SECONDS:.0f} s"
        ) from None


def _parse_head(head: bytes, max_body_bytes: int) -> _Head:
    request_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = request_line.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0") or not words[1].startswith("/"):
        raise _unreadable(HTTPStatus.BAD_REQUEST, "the first line is not that of an HTTP/1.1 request")
    method, target, version = words
    headers = _parse_headers(lines)
    try:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=16, errors="strict"))
    except ValueError as error:
        raise _unreadable(HTTPStatus.BAD_REQUEST, f"the path cannot be read: {error}") from None
    return _Head(
        method=method,
        path=parts.path,
        query=query,
        keeps_alive=version == "HTTP/1.1" and headers.get("connection", "").lower() != "close",
        body_bytes=_body_bytes(method, headers, max_body_bytes),
        expects_continue=headers.get("expect", "").lower() == "100-continue",
        installation=headers.get(_INSTALLATION, ""),
    )


def _parse_headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise _unreadable(HTTPStatus.BAD_REQUEST, "a header is not of the form `Name: value`")
        key = name.lower()
        if key == "content-length" and key in headers:
            raise _unreadable(HTTPStatus.BAD_REQUEST, "Content-Length is given twice")
        headers[key] = value.strip()
    return headers


def _body_bytes(method: str, headers: dict[str, str], max_body_bytes: int) -> int:
    length = headers.get("content-length")
    if "transfer-encoding" in headers or (length is None and method in ("POST", "PATCH", "PUT")):
        raise _unreadable(HTTPStatus.LENGTH_REQUIRED, "a body is sent with Content-Length, not chunked")
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise _unreadable(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
    if int(length) > max_body_bytes:
        raise _unreadable(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {max_body_bytes} bytes, not {length}"
        )
    return int(length)


def _unreadable(status: HTTPStatus, sentence: str) -> Unacceptable:
    return Unacceptable(status, sentence, ends_connection=True)


def _encode(answer: HttpAnswer, *, keeps_alive: bool, with_body: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(answer.body)}",
        *([f"Allow: {answer.allow}"] if answer.allow else []),
        *([f"Location: {answer.location}"] if answer.location else []),
        *([] if keeps_alive else ["Connection: close"]),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (answer.body if with_body else b"")


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what the other side still sends: closing earlier would reset the connection, and our answer with
    it.
    """
    with contextlib.suppress(OSError):  # it is late, or the other side has gone: either way there is no more to do
        if writer.can_write_eof():
            writer.write_eof()
        async with asyncio.timeout(_LINGER_SECONDS):
            while await reader.read(65536):
                pass
