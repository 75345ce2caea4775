"""Any bytes at all on a connection are answered or ignored; nothing else ever happens."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerotail.lab.receiver.http import MAX_HEAD_BYTES, HttpAnswer, HttpRequest, serve_connection

pytestmark = pytest.mark.fast


class Wire:
    """The writing half of a connection, kept in memory."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        pass

    def can_write_eof(self) -> bool:
        return False


def converse(arriving: bytes) -> tuple[list[HttpRequest], list[tuple[int, Any]]]:
    """What reached the handler, and the answers as (status, body)."""
    handled: list[HttpRequest] = []
    wire: Any = Wire()

    async def handle(request: HttpRequest) -> HttpAnswer:
        handled.append(request)
        return HttpAnswer(HTTPStatus.OK, b"{}")

    async def story() -> None:
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
        reader.feed_data(arriving)
        reader.feed_eof()
        await serve_connection(reader, wire, handle, max_body_bytes=1000)

    asyncio.run(story())
    return handled, list(_split(wire.written))


def _split(written: bytes) -> list[tuple[int, Any]]:
    answers = []
    while written:
        head, _, rest = written.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        if lines[0] != "HTTP/1.1 100 Continue":
            length = int(dict(line.split(": ") for line in lines[1:])["Content-Length"])
            answers.append((int(lines[0].split()[1]), json.loads(rest[:length])))
            rest = rest[length:]
        written = rest
    return answers


_lines = st.sampled_from(
    [
        b"GET /last HTTP/1.1",
        b"POST /messages HTTP/1.1",
        b"POST / HTTP/1.0",
        b"Content-Length: 2",
        b"Content-Length: 5000",
        b"Content-Length:",
        b"Expect: 100-continue",
        b"Connection: close",
        b": nothing",
        b" folded",
        b"",
        b"{}",
    ]
)


@settings(deadline=None)
@given(st.lists(st.one_of(_lines, st.binary(max_size=30))))
def test_any_bytes_are_answered_with_a_known_status_or_not_at_all(lines: list[bytes]) -> None:
    handled, answers = converse(b"\r\n".join(lines) + b"\r\n\r\n")
    assert [status for status, _ in answers].count(200) == len(handled)
    assert all(status in (200, 400, 411, 413, 431) for status, _ in answers)
    assert all("error" in body for status, body in answers if status != 200)


def test_requests_that_arrive_together_are_answered_one_after_the_other() -> None:
    handled, answers = converse(
        b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\none"
        b"GET /b?x=1&y=%20 HTTP/1.1\r\n\r\n"
        b"POST /c HTTP/1.1\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n"
        b"GET /never HTTP/1.1\r\n\r\n"
    )
    assert handled == [
        HttpRequest("POST", "/a", {}, b"one"),
        HttpRequest("GET", "/b", {"x": "1", "y": " "}, b""),
        HttpRequest("POST", "/c", {}, b""),
    ]
    assert [status for status, _ in answers] == [200, 200, 200]


def test_what_follows_an_unreadable_request_is_not_taken_for_the_next_one() -> None:
    handled, answers = converse(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n")
    assert handled == []
    assert [status for status, _ in answers] == [411]
