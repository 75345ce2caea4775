"""The control port and the process: wrong requests, wrong configurations, the end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.lab.link_bench import (
    LinkBench,
)
from zerotail.deadline import Deadline
from zerotail.errors import Misused, Unavailable
from zerotail.lab.link import LinkControl

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"nonsense\n", "not a request"),
        (b"\xff\xfe\n", "not a request"),
        (b"[]\n", "not a request"),
        (b'{"command":"explode"}\n', "explode"),
        (b'{"command":"delay"}\n', "latency_ms"),
        (b'{"command":"delay","latency_ms":-1}\n', "latency_ms"),
        (b'{"command":"cut","mode":"gently"}\n', "gently"),
        (b'{"command":"cut","direction":"north->south"}\n', "east->west"),
        (b'{"command":"cut","directoin":"both"}\n', "directoin"),
        (b'{"command":"throttle","bytes_per_second":0}\n', "bytes_per_second"),
        (b"x" * 100_000 + b"\n", "at most"),
    ],
)
def test_a_wrong_request_is_declined_with_a_sentence_and_changes_nothing(
    bench: LinkBench, line: bytes, complaint: str
) -> None:
    before = bench.control.status(deadline=bench.deadline)
    with socket.create_connection(("127.0.0.1", bench.control.port), timeout=5) as connection:
        connection.sendall(line)
        answer = json.loads(connection.makefile("rb").readline())
    assert answer["answer"] == "declined"
    assert complaint in answer["error"]
    assert bench.control.status(deadline=bench.deadline) == before


def test_the_client_tells_a_wrong_request_from_an_absent_link(bench: LinkBench, free_port: Callable[[], int]) -> None:
    with pytest.raises(Misused, match="north"):
        bench.control.cut("north", deadline=bench.deadline)
    with pytest.raises(Unavailable, match="does not answer"):
        LinkControl(free_port()).status(deadline=bench.deadline)


@pytest.mark.parametrize("busy", [False, True])
def test_sigterm_ends_the_link_at_once(bench: LinkBench, busy: bool) -> None:
    east, _ = bench.connect()
    bench.control.delay(5000, deadline=bench.deadline)
    if busy:
        east.sendall(bytes(100_000))
    bench.process.send_signal(signal.SIGTERM)
    assert bench.process.wait(timeout=2) == 0


@pytest.mark.parametrize(
    ("text", "exit_code", "complaint"),
    [
        ("{", 2, "is wrong"),
        ('{"control_port": 1, "forwards": [], "colour": 1}', 2, "colour"),
        (
            '{"control_port": 20001, "forwards": [{"name": "a", "from": "east", "to": "east", '
            '"listen_port": 20001, "target_port": 1}]}',
            2,
            "port 20001 is listened on twice; forward 'a' leads from 'east' to itself",
        ),
    ],
)
def test_a_wrong_configuration_ends_with_one_sentence(
    tmp_path: Path, text: str, exit_code: int, complaint: str
) -> None:
    path = tmp_path / "link.json"
    path.write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "zerotail.lab.link", "--config", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == exit_code
    assert complaint in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_taken_port_is_refused_by_its_number(bench: LinkBench, tmp_path: Path) -> None:
    path = tmp_path / "second.json"
    path.write_text(json.dumps({"control_port": bench.control.port, "forwards": []}))
    ended = subprocess.run(
        [sys.executable, "-m", "zerotail.lab.link", "--config", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert str(bench.control.port) in ended.stderr


def test_the_latency_of_the_configuration_holds_from_the_start(
    start: Callable[..., subprocess.Popen[bytes]], free_port: Callable[[], int], deadline: Deadline
) -> None:
    control_port = free_port()
    forward = {"name": "a", "from": "east", "to": "west", "listen_port": free_port(), "target_port": 1}
    start("zerotail.lab.link", {"control_port": control_port, "latency_ms": 12.5, "forwards": [forward]})
    status = LinkControl(control_port).status(deadline=deadline)
    assert {way.direction: way.latency_ms for way in status.ways} == {"east->west": 12.5, "west->east": 12.5}
