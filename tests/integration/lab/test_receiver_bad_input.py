"""Wrong requests are answered with a sentence, remembered nowhere, and hurt nobody."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import struct
from collections.abc import Callable

import pytest

from integration.lab.receiver_bench import ReceiverBench, message
from zerotail.deadline import wait_until

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("missing", ["channel", "partition", "number", "epoch", "incarnation", "site", "body"])
def test_a_missing_field_is_named(receiver: ReceiverBench, missing: str) -> None:
    content = {name: value for name, value in message(1).items() if name != missing}
    status, answer = receiver.post("/messages", content)
    assert status == 400
    assert missing in answer["error"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("number", 0),
        ("number", -1),
        ("number", 2**63),
        ("number", "1"),
        ("number", True),
        ("number", None),
        ("number", 1.5),
        ("partition", -1),
        ("partition", 2**31),
        ("epoch", 0),
        ("incarnation", -1),
        ("channel", ""),
        ("channel", "x" * 201),
        ("channel", "line\n"),
        ("channel", 7),
        ("site", ""),
        ("body", "not base64!"),
        ("body", 5),
        ("possible_duplicate", "yes"),
        ("colour", "red"),
    ],
)
def test_a_wrong_field_is_refused_with_a_sentence_and_nothing_is_remembered(
    receiver: ReceiverBench, field: str, value: object
) -> None:
    status, answer = receiver.post("/messages", message(1) | {field: value})
    assert status == 400
    assert field in answer["error"] or field == "body"
    assert receiver.attempts() == []


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"POST /messages HTTP/1.1\r\nContent-Length: 4\r\n\r\nnope", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
        (b"POST /batches HTTP/1.1\r\nContent-Length: 400000\r\n\r\n" + b"[" * 400_000, 400),
        (b"POST /messages HTTP/1.1\r\n\r\n", 411),
        (b"POST /messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST /messages HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length : 1\r\n\r\na", 400),
        (b"GET /last HTTP/1.1\r\n\r\n", 400),
        (b"GET /last?channel=bank&partition=x HTTP/1.1\r\n\r\n", 400),
        (b"GET /last?channel=bank&partition=-1 HTTP/1.1\r\n\r\n", 400),
        (b"GET /last?channel=%ff&partition=0 HTTP/1.1\r\n\r\n", 400),
        (b"GET /messages HTTP/1.1\r\n\r\n", 405),
        (b"BREW /messages HTTP/1.1\r\n\r\n", 405),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"GET //[ HTTP/1.1\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /last HTTP/1.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", 431),
    ],
)
def test_a_wrong_request_gets_its_status_and_a_sentence_and_the_receiver_lives(
    receiver: ReceiverBench, raw: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
        connection.sendall(raw)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == status
        assert json.loads(answer.read())["error"]
    assert receiver.send(1) == (200, "accepted")


def test_a_connection_goes_on_after_a_wrong_body(receiver: ReceiverBench) -> None:
    connection = receiver.connection()
    for content, status in ((b"nope", 400), (json.dumps(message(1)).encode(), 200), (b"{}", 400)):
        connection.request("POST", "/messages", content)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_a_body_over_the_limit_is_answered_even_if_it_is_sent_to_its_end(
    open_receiver: Callable[..., ReceiverBench],
) -> None:
    receiver = open_receiver("R1", max_body_bytes=100_000)
    status, answer = receiver.post("/messages", message(1, os.urandom(12_000_000)))
    assert status == 413
    assert "100000" in answer["error"]
    assert receiver.send(1, os.urandom(60_000)) == (200, "accepted")


def test_a_request_that_breaks_off_is_no_attempt(receiver: ReceiverBench) -> None:
    content = json.dumps(message(1)).encode()
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
        connection.sendall(b"POST /messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(content) + content[:-1])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert receiver.attempts() == []


def test_one_connection_too_many_is_told_so(receiver: ReceiverBench) -> None:
    idle = [socket.create_connection(("127.0.0.1", receiver.port), timeout=5) for _ in range(128)]
    try:
        status, answer = receiver.ask("GET", "/last?channel=bank&partition=0")
        assert status == 503
        assert "128" in answer["error"]
    finally:
        for connection in idle:
            connection.close()

    def is_served() -> bool:
        return receiver.ask("GET", "/last?channel=bank&partition=0")[0] == 200

    wait_until("the receiver takes connections again", is_served, receiver.deadline)


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(receiver: ReceiverBench) -> None:
    content = json.dumps(message(1)).encode()
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
        connection.sendall(
            b"POST /messages HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(content)
        )
        file = connection.makefile("rb")
        assert file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert file.readline() == b"\r\n"
        connection.sendall(content)
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        file.close()


def test_sigterm_ends_the_receiver_at_once(receiver: ReceiverBench) -> None:
    receiver.control.misbehave(slow_ms=60_000, deadline=receiver.deadline)
    connection = receiver.connection()
    connection.request("POST", "/messages", json.dumps(message(1)))
    wait_until("the message is stored", lambda: receiver.last() == 1, receiver.deadline)
    receiver.process.send_signal(signal.SIGTERM)
    assert receiver.process.wait(timeout=2) == 0
    connection.close()


def test_clients_that_vanish_at_any_moment_hurt_nobody(receiver: ReceiverBench) -> None:
    content = json.dumps(message(2)).encode()
    requests = [
        b"",
        b"POST",
        b"hello\r\n\r\n",
        b"POST /messages HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n" + bytes(100_000),
        b"POST /messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(content) + content,
    ]
    for request in requests * 40:
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(ConnectionError):
                connection.sendall(request)

    def is_served() -> bool:  # not at once: two hundred may be more than it takes at a time
        return receiver.ask("GET", "/last?channel=bank&partition=0")[0] == 200

    wait_until("the receiver takes connections again", is_served, receiver.deadline)
    assert receiver.send(1) == (200, "accepted")
