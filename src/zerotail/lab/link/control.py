"""The control port: reads requests, has the link carry them out, and answers each, the wrong ones too."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from zerotail.lab.link.link import Link
from zerotail.lab.link.protocol import MAX_LINE_BYTES, Answer, Declined, Request
from zerotail.lab.loopback import bind_loopback

_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


async def open_control(link: Link, port: int) -> asyncio.Server:
    """Listen for requests on the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await _converse(link, reader, writer)
        writer.close()

    return await asyncio.start_server(serve, sock=bind_loopback(port), limit=MAX_LINE_BYTES)


async def _converse(link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # the line is longer than the reader's limit, and its end is not known
            _write(writer, Declined(f"a request is one line of at most {MAX_LINE_BYTES} bytes"))
            return
        if not line.endswith(b"\n"):
            return
        _write(writer, _answer(link, line))
        await writer.drain()


def _answer(link: Link, line: bytes) -> Answer:
    try:
        request = _requests.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Declined(f"not a request: {error}")
    return link.obey(request)


def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(msgspec.json.encode(answer) + b"\n")
