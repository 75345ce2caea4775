"""What is particular about HTTP: which silence is certain, kept connections, certificates and headers."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread

import pytest
from msgspec import structs

from integration.channel.test_contract import batch, claim
from support.outside import EAST, Judge, http_outside
from zerotail.channel.bounded import MOST_ANSWER_BYTES
from zerotail.channel.http import HttpReceiver
from zerotail.config.secret import Keeper, Secret
from zerotail.core.emission import Lane
from zerotail.core.gate import Release
from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.deadline import Deadline
from zerotail.ports import Accepted, Indefinite, OutOfOrder, Refused, Unreachable

LANE = Lane(ChannelName("bank"), PartitionNumber(0))


@contextmanager
def answering(
    status: int, body: bytes, *, tls: ssl.SSLContext | None = None, header: str = "Authorization"
) -> Iterator[tuple[str, list[str]]]:
    """A server that answers every request alike, and the values of one header that it saw."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.headers.get(header, ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            seen.append(self.headers.get(header, ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://localhost:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.fast
def test_a_connection_that_cannot_be_made_has_carried_nothing(judge: Judge) -> None:
    with answering(200, b"") as (url, _):
        pass
    with closing(HttpReceiver.at(url, EAST)) as sender:
        assert isinstance(sender.send(batch(LANE, 1, 1)), Unreachable)
        assert isinstance(sender.claim(claim(LANE)), Unreachable)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, b'{"error":"busy"}'),
        (500, b""),
        (429, b""),
        (200, b"<html>welcome</html>"),
        (200, b'{"verdicts":[],"last_accepted":1}'),
        (200, b'{"verdicts":["accepted","accepted"],"last_accepted":1}'),
        (409, b'{"error":"no"}'),
    ],
)
def test_an_answer_that_is_not_of_the_protocol_says_nothing(status: int, body: bytes) -> None:
    with answering(status, body) as (url, _), closing(HttpReceiver.at(url, EAST)) as sender:
        assert isinstance(sender.send(batch(LANE, 1, 1)), Indefinite)


@pytest.mark.fast
def test_what_is_sent_exposed_is_flagged_in_a_header(exposed_and_gated: tuple[Release, Release]) -> None:
    answer = b'{"verdicts":["accepted"],"last_accepted":1}'
    with (
        answering(200, answer, header="Zerotail-Exposed") as (url, seen),
        closing(HttpReceiver.at(url, EAST)) as sender,
    ):
        for release in exposed_and_gated:
            assert sender.send(structs.replace(batch(LANE, 1, 1), release=release)) == Accepted(EmissionNumber(1))
    assert seen == ["true", ""]


@pytest.mark.fast
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_a_wrong_request_is_refused_with_its_status(status: int) -> None:
    with answering(status, b"") as (url, _), closing(HttpReceiver.at(url, EAST)) as sender:
        assert sender.send(batch(LANE, 1, 1)) == Refused(f"it answered {status}")
        assert sender.claim(claim(LANE)) == Refused(f"it answered {status}")


@pytest.mark.fast
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_says_nothing_of_what_was_sent(status: int) -> None:
    with answering(status, b"") as (url, seen), closing(HttpReceiver.at(url, EAST)) as sender:
        for answer in (sender.send(batch(LANE, 1, 1)), sender.claim(claim(LANE))):
            assert isinstance(answer, Indefinite)
            assert f"{status}, a redirect" in answer.reason
    assert len(seen) == 2, "it was not followed"


@contextmanager
def _dripping(first: bytes, drop: bytes, every_seconds: float) -> Iterator[str]:
    """A server that begins an answer and never ends it."""
    stop = Event()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(100_000)
                self.request.sendall(first)
                while not stop.wait(every_seconds):
                    self.request.sendall(drop)

    server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.fast
@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-More: x\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-More: ", b"x"),
        (_CHUNKED, b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),
        (b"", b""),
    ],
    ids=["headers", "one header", "chunks", "body", "nothing"],
)
def test_an_answer_that_comes_byte_by_byte_ends_at_the_deadline(first: bytes, drop: bytes) -> None:
    began = time.monotonic()
    with _dripping(first, drop, 0.02) as url, closing(HttpReceiver(url, EAST, timeout_seconds=0.4)) as sender:
        answer = sender.send(batch(LANE, 1, 1))
    assert isinstance(answer, Indefinite)
    assert "no whole answer" in answer.reason
    assert time.monotonic() - began < 5.0


@pytest.mark.fast
def test_an_answer_without_an_end_is_not_kept_in_memory() -> None:
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with _dripping(_CHUNKED, chunk, 0.0) as url, closing(HttpReceiver(url, EAST, timeout_seconds=30.0)) as sender:
        answer = sender.send(batch(LANE, 1, 1))
    assert isinstance(answer, Indefinite)
    assert f"more than {MOST_ANSWER_BYTES} bytes" in answer.reason


@pytest.mark.fast
def test_a_receiver_that_does_not_know_the_question_has_not_said_who_claimed_it() -> None:
    for status, body in ((405, b""), (404, b"{}"), (200, b"not of the protocol")):
        with answering(status, body) as (url, _), closing(HttpReceiver.at(url, EAST)) as sender:
            assert sender.last_claim(LANE, "ours") == Unreachable(), (status, body)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("body", "epoch"),
    [
        (b'{"highest":null}', None),
        (b'{"highest":{"epoch":513,"incarnation":1}}', 513),
        (b'{"highest":{"epoch":513,"incarnation":1},"installation":"ours"}', 513),
        (b'{"highest":{"epoch":513,"incarnation":1},"installation":"another"}', None),
        (b'{"highest":{"epoch":513,"incarnation":1},"installation":""}', None),
    ],
)
def test_only_claims_of_the_own_installation_count(body: bytes, epoch: int | None) -> None:
    told = answering(200, body, header="Zerotail-Installation")
    with told as (url, seen), closing(HttpReceiver.at(url, EAST)) as sender:
        assert sender.last_claim(LANE, "ours") == epoch
    assert seen == ["ours"]


@pytest.mark.servers
def test_who_claimed_last_is_told_and_nothing_is_claimed(judge: Judge) -> None:
    outside = http_outside(judge, ReceiverClass.R2)
    lane = outside.lane()
    with closing(outside.open(lane, 5.0)) as sender:
        assert isinstance(sender, HttpReceiver)
        assert sender.last_claim(lane, "ours") is None
        sender.claim(structs.replace(claim(lane, epoch=513), installation="ours"))
        assert sender.last_claim(lane, "ours") == 513
        assert sender.last_claim(lane, "another") is None
        assert sender.last_claim(lane, "") is None
        ours = structs.replace(batch(lane, 1, 2, epoch=513), installation="ours")
        assert sender.send(ours) == Accepted(EmissionNumber(2))


@pytest.mark.servers
def test_a_batch_that_was_taken_in_part_says_how_far(judge: Judge) -> None:
    outside = http_outside(judge, ReceiverClass.R2)
    lane = outside.lane()
    with closing(outside.open(lane, 5.0)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 2))
        assert sender.send(batch(lane, 4, 6)) == OutOfOrder(EmissionNumber(2))


@pytest.mark.servers
def test_a_lost_answer_is_resolved_by_the_next_claim(judge: Judge) -> None:
    outside = http_outside(judge, ReceiverClass.R2)
    lane = outside.lane()
    with closing(outside.open(lane, 5.0)) as sender:
        sender.claim(claim(lane))
        judge.control.misbehave(lose_answers=1, deadline=Deadline.after(5))
        assert isinstance(sender.send(batch(lane, 1, 3)), Indefinite)
        welcome = sender.claim(claim(lane, incarnation=2))
    assert isinstance(welcome, Welcome)
    assert welcome.last == 3


@pytest.mark.servers
def test_a_kept_connection_that_was_closed_meanwhile_leaves_no_doubt(judge: Judge) -> None:
    outside = http_outside(judge, ReceiverClass.R3)
    lane = outside.lane()
    with closing(outside.open(lane, 5.0)) as sender:
        assert sender.send(batch(lane, 1, 1)) == Accepted(EmissionNumber(1))
        judge.kill()
        judge.start()
        assert sender.send(batch(lane, 2, 2)) == Accepted(EmissionNumber(2))


@pytest.mark.fast
def test_headers_are_looked_up_for_each_connection_and_certificates_are_checked(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate, key)
    tokens = iter(["first", "second", "third"])
    with answering(200, b'{"verdicts":["accepted"],"last_accepted":1}', tls=served) as (url, seen):
        with closing(HttpReceiver.at(url, EAST)) as stranger:
            assert isinstance(stranger.send(batch(LANE, 1, 1)), Unreachable)
        with closing(
            HttpReceiver(
                url,
                EAST,
                headers=lambda: {"Authorization": next(tokens)},
                tls=ssl.create_default_context(cafile=str(certificate)),
            )
        ) as sender:
            for _ in range(2):
                assert sender.send(batch(LANE, 1, 1)) == Accepted(EmissionNumber(1))
            sender.close()
            sender.send(batch(LANE, 1, 1))
    assert seen == ["first", "first", "second"]


@pytest.mark.fast
def test_a_file_with_a_token_that_is_away_for_a_moment_has_carried_nothing(tmp_path: Path) -> None:
    token = Secret("Bearer ${file:token}", keeper=Keeper({}, tmp_path))
    with (
        answering(200, b'{"verdicts":["accepted"],"last_accepted":1}') as (url, seen),
        closing(HttpReceiver(url, EAST, headers=lambda: {"Authorization": token.reveal()})) as sender,
    ):
        assert isinstance(sender.send(batch(LANE, 1, 1)), Unreachable)
        (tmp_path / "token").write_text("new")
        (tmp_path / "token").chmod(0o600)
        assert sender.send(batch(LANE, 1, 1)) == Accepted(EmissionNumber(1))
    assert seen == ["Bearer new"]
