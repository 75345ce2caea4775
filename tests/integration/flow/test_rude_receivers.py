"""Whatever one receiver answers, its lane alone stands, and says why (E17)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import get_args

import pytest
from psycopg.conninfo import make_conninfo

from support.command import Said, call
from support.emitting import Emitting, make_emitting
from support.outside import Judge, wait_for
from zerotail.core.emission import Lane
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.lab.receiver.rudeness import Rudeness
from zerotail.postgres.connection import session
from zerotail.postgres.lane_stop import read_stops
from zerotail.postgres.owed import read_backlogs
from zerotail.postgres.process import read_reports

pytestmark = pytest.mark.servers

GOOD = ("postgres-R1", "kafka-R1")
RUDE = ("http-R0", "http-R1", "http-R2", "http-R3", "postgres-R0")


class Rude:
    """A server that answers what nobody expects, by the path of the request."""

    def __init__(self) -> None:
        self.welcome = b'{"last_accepted":100,"last_epoch":null}'
        self.sent = 0
        self.stop = Event()
        rude = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with suppress(OSError):
                    getattr(self, f"do_{self.path.strip('/')}")()

            def do_welcome(self) -> None:
                self._say(200, rude.welcome)

            def do_take(self) -> None:
                rude.sent += 1
                self._say(503, b"")

            def do_redirect(self) -> None:
                self._say(303, b"")

            def do_older(self) -> None:
                self._say(409, b'{"error":"older","highest":{"epoch":256,"incarnation":1000000}}')

            def do_strange(self) -> None:
                self.wfile.write(b"HTTP\x00/1.1 \xff\x1b[31m nothing\r\n\r\n")

            def do_silent(self) -> None:
                rude.stop.wait(60)

            def do_endless(self) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while not rude.stop.wait(0.0005):
                    self.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

            def _say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{path}"

    def close(self) -> None:
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def rude() -> Iterator[Rude]:
    server = Rude()
    yield server
    server.close()


@pytest.fixture
def emitting(
    lab: Layout, judge: Judge, servers_outside: Layout, rude: Rude, tmp_path: Path
) -> Iterator[Callable[..., Emitting]]:
    made: list[Emitting] = []

    def make(*names: str, **changes: dict[str, object]) -> Emitting:
        one = make_emitting(lab, judge, tmp_path, names)
        made.append(one)
        content = json.loads(one.config.read_text())
        for name, change in changes.items():
            content["channels"][name.replace("_", "-")].update(change)
        one.config.write_text(json.dumps(content))
        return one

    yield make
    for one in made:
        one.end()


def acknowledged(one: Emitting) -> dict[str, int]:
    with session(dsn(one.lab.database("east")), Deadline.after(20)) as primary:
        return {str(lane.channel): lane.acknowledged for lane in read_backlogs(primary) if lane.stage == one.stage}


def said(one: Emitting) -> dict[str, tuple[str, str]]:
    """What the emitter says of each lane: what it does, and why."""
    with session(dsn(one.lab.database("east")), Deadline.after(20)) as primary:
        seen = read_reports(primary)
    pids = {process.pid for process in one.processes}
    return {row.name: (row.doing, row.reason) for row in seen if row.partition == one.partition and row.pid in pids}


def values(first: int, count: int) -> list[bytes]:
    return [b"payment %d" % number for number in range(first, first + count)]


def test_every_rude_receiver_holds_up_its_own_lane_and_says_why(
    emitting: Callable[..., Emitting], rude: Rude, servers_outside: Layout
) -> None:
    place = dsn(servers_outside.database("outside"))
    with session(place, Deadline.after(10)) as outside:
        outside.execute("create role nobody_here login")
    one = emitting(
        *GOOD,
        *RUDE,
        http_R0={"last_number_url": rude.url("welcome"), "url": rude.url("take")},
        http_R1={"url": rude.url("redirect")},
        http_R2={"last_number_url": rude.url("older")},
        http_R3={"url": rude.url("silent"), "timeout": "200ms"},
        postgres_R0={"dsn": make_conninfo(place, user="nobody_here")},
    )
    process = one.start()
    one.owe(values(1, 40))
    expected = {
        "http-R0": ("stopped", "ZT601 the receiver of http-R0 has 100 messages"),
        "http-R1": ("waiting", "the receiver did not say whether it arrived: it answered 303, a redirect"),
        "http-R2": ("waiting", "the receiver has met a newer sender"),
        "http-R3": ("waiting", "are in doubt"),
        "postgres-R0": ("waiting", "the receiver does not answer: the database at 127.0.0.1"),
    }

    def all_say_why() -> bool:
        seen = said(one)
        return all(
            seen.get(name, ("", ""))[0] == doing and why in seen[name][1] for name, (doing, why) in expected.items()
        )

    wait_for("the good ones go on", lambda: all(acknowledged(one)[name] == 40 for name in GOOD), seconds=30)
    wait_for("each of the others says why it stands", all_say_why, seconds=30)
    assert "permission denied for table zerotail_receipt" in said(one)["postgres-R0"][1]
    assert "zerotail emissions resume --channel http-R0 --partition" in said(one)["http-R0"][1]
    one.owe(values(41, 60))
    wait_for("the good ones still go on", lambda: all(acknowledged(one)[name] == 100 for name in GOOD), seconds=30)
    assert process.poll() is None
    with session(place, Deadline.after(10)) as outside:
        outside.execute("grant select, insert, update on zerotail_receipt, inbox to nobody_here")
    wait_for("who was given the right goes on", lambda: acknowledged(one)["postgres-R0"] == 100, seconds=30)
    assert process.poll() is None


def test_an_answer_without_an_end_costs_neither_the_process_nor_its_memory(
    emitting: Callable[..., Emitting], rude: Rude
) -> None:
    one = emitting("http-R1", "postgres-R1", http_R1={"url": rude.url("endless")})
    process = one.start()
    one.owe(values(1, 40))
    wait_for("the other one goes on", lambda: acknowledged(one)["postgres-R1"] == 40, seconds=30)
    wait_for("it says why", lambda: "its answer has more than" in said(one).get("http-R1", ("", ""))[1], seconds=30)
    assert process.poll() is None


def test_an_answer_that_no_text_can_hold_is_told_all_the_same_and_silences_nobody(
    emitting: Callable[..., Emitting], rude: Rude
) -> None:
    one = emitting("http-R1", "postgres-R1", http_R1={"url": rude.url("strange")})
    one.start()
    one.owe(values(1, 40))
    wait_for("the other one goes on", lambda: acknowledged(one)["postgres-R1"] == 40, seconds=30)
    wait_for("it says why", lambda: "HTTP\\u0000/1.1" in said(one).get("http-R1", ("", ""))[1], seconds=30)
    assert said(one)["postgres-R1"][0] in ("working", "waiting")


def test_a_lane_that_met_another_history_stays_where_it_is_until_somebody_decides(
    emitting: Callable[..., Emitting], rude: Rude, lab: Layout
) -> None:
    one = emitting("http-R0", "postgres-R1", http_R0={"last_number_url": rude.url("welcome"), "url": rude.url("take")})
    process = one.start()
    one.owe(values(1, 40))
    primary = dsn(lab.database("east"))

    def stopped() -> list[str]:
        with session(primary, Deadline.after(20)) as connection:
            return [stop.reason for stop in read_stops(connection) if stop.partition == one.partition]

    wait_for("it is stored", lambda: bool(stopped()), seconds=30)
    assert "ZT601" in stopped()[0]
    one.owe(values(41, 80))
    wait_for("the other one goes on", lambda: acknowledged(one)["postgres-R1"] == 120, seconds=30)
    process.terminate()
    assert process.wait(30) == 0
    process = one.start()
    wait_for("a new start says it, too", lambda: said(one).get("http-R0", ("", ""))[0] == "stopped", seconds=30)
    assert rude.sent == 0, "the numbers that it had too many were given meanwhile: nothing of them was left out"
    lane = ("--channel", "http-R0", "--partition", str(one.partition))
    listed = call("emissions", "list", "--channel", "http-R0", "--dsn", primary)
    assert f"http-R0 partition {one.partition} has stopped: ZT601" in listed.out
    rude.welcome = b'{"last_accepted":0,"last_epoch":null}'

    def resume() -> Said:
        return call("emissions", "resume", *lane, "--by", "anna", "--dsn", primary, "--json")

    answer = resume().answer("emissions-resume")
    assert "ZT601" in answer["stopped_for"][0]
    wait_for("it sends what it owes", lambda: rude.sent > 0, seconds=30)
    assert stopped() == []
    again = resume()
    assert (again.code, again.answer("error")["code"]) == (3, "ZT606")
    assert Lane(one.channels[0], one.partition) in one.given
    assert process.poll() is None


def test_a_lane_whose_receiver_is_mended_goes_on_when_somebody_says_so(
    emitting: Callable[..., Emitting], judge: Judge, lab: Layout
) -> None:
    one = emitting("http-R2")
    one.start()
    one.owe(values(1, 40))
    wait_for("it sends", lambda: acknowledged(one)["http-R2"] == 40, seconds=30)
    for how in get_args(Rudeness)[1:]:
        judge.control.misbehave(rudeness=how, rude_to=one.partition, deadline=Deadline.after(10))
        before = acknowledged(one)["http-R2"]
        one.owe(values(before + 1, 10))
        wait_for("it says why", lambda: said(one).get("http-R2", ("", ""))[0] in ("waiting", "stopped"), seconds=30)
        if how == "ahead":
            wait_for("it stops", lambda: said(one)["http-R2"][0] == "stopped", seconds=30)
        judge.control.behave(deadline=Deadline.after(10))
        if how == "ahead":
            lane = ("--channel", "http-R2", "--partition", str(one.partition))
            primary = dsn(lab.database("east"))
            assert call("emissions", "resume", *lane, "--by", "anna", "--dsn", primary).code == 0
        wait_for(f"{how}: it goes on", lambda: acknowledged(one)["http-R2"] == before + 10, seconds=30)  # noqa: B023
