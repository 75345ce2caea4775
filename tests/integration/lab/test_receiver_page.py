"""The examples of `docs/receiver-protocol.md`, sent to a receiver one after the other."""

from __future__ import annotations

import http.client
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from integration.lab.receiver_bench import ReceiverBench

pytestmark = pytest.mark.fast

PAGE = Path(__file__).parents[3] / "docs" / "receiver-protocol.md"


def examples() -> list[tuple[str, str]]:
    """Each `curl` line of the page with the answer that stands below it."""
    blocks = re.findall(r"^```\n(curl .*?)\n(\{.*?)\n```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [(command, answer) for command, answer in blocks]


def curl(command: str, ports: dict[int, int]) -> Any:
    """Do what the line says, on the ports of the test."""
    words = shlex.split(command)
    body = words[words.index("-d") + 1] if "-d" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "POST" if body else "GET"
    url = urlsplit(next(word for word in words if word.startswith("http://")))
    assert url.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", ports[url.port], timeout=10)
    try:
        connection.request(method, f"{url.path}?{url.query}" if url.query else url.path, body)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_the_examples_of_the_page_are_answered_as_it_says(receiver: ReceiverBench) -> None:
    ports = {18080: receiver.port, 18081: receiver.control.port}
    shown = examples()
    assert len(shown) == 5
    for command, answer in shown:
        assert curl(command, ports) == json.loads(answer), command


@pytest.mark.parametrize("kind", ["message", "claim"])
def test_attempts_have_the_fields_that_the_page_shows(receiver: ReceiverBench, kind: str) -> None:
    for command, _ in examples():
        curl(command, {18080: receiver.port, 18081: receiver.control.port})
    shown = next(
        json.loads(line) for line in re.findall(rf'^\{{"kind":"{kind}".*?\}}$', PAGE.read_text(), re.DOTALL | re.M)
    )
    page = curl("curl http://127.0.0.1:18081/attempts", {18081: receiver.control.port})
    written = next(attempt for attempt in page["attempts"] if attempt["kind"] == kind)
    assert list(written) == list(shown)


def test_every_route_of_the_page_exists_and_no_other(open_receiver: Callable[..., ReceiverBench]) -> None:
    receiver = open_receiver("R1")
    shown = {word.partition("?")[0] for word in re.findall(r"`(?:GET|POST|PATCH|DELETE) (/\w+)", PAGE.read_text())}
    routes = set()
    for port in (18080, 18081):
        sentence = curl(f"curl http://127.0.0.1:{port}/none", {18080: receiver.port, 18081: receiver.control.port})[
            "error"
        ]
        routes |= set(re.findall(r"/\w+", sentence)) - {"/none"}
    assert routes == shown
