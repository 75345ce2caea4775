"""Real processes of the laboratory on free ports, ended with the test that started them."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.lab.link_bench import EAST_WEST, WEST_EAST, LinkBench
from integration.lab.receiver_bench import ReceiverBench
from zerotail.deadline import Deadline
from zerotail.lab.link import LinkControl
from zerotail.lab.receiver import ReceiverControl

ROOT = Path(__file__).parents[3]
Start = Callable[..., subprocess.Popen[bytes]]


def _free_port() -> int:
    # Below the range from which the kernel takes ports for outgoing connections.
    while True:
        port = random.randrange(20000, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Gives a port that nobody listens on, a different one at each call."""
    given: set[int] = set()

    def give() -> int:
        while (port := _free_port()) in given:
            pass
        given.add(port)
        return port

    return give


@pytest.fixture
def deadline() -> Deadline:
    """The budget of one test."""
    return Deadline.after(20)


@pytest.fixture
def start(tmp_path: Path, deadline: Deadline) -> Iterator[Start]:
    """Starts `python -m MODULE --config FILE` and returns when it has said that it is ready."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(module: str, config: object) -> subprocess.Popen[bytes]:
        path = tmp_path / f"{module}-{len(running)}.json"
        path.write_text(json.dumps(config))
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--config", path],
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        )
        running.append(process)
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], deadline.seconds_left)
        assert readable, f"{module} said nothing"
        assert b"ready" in process.stdout.readline()
        return process

    yield begin
    for process in running:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def open_receiver(
    start: Callable[..., subprocess.Popen[bytes]],
    free_port: Callable[[], int],
    tmp_path: Path,
    deadline: Deadline,
) -> Callable[..., ReceiverBench]:
    def begin(receiver_class: str = "R2", **settings: object) -> ReceiverBench:
        config = {
            "port": free_port(),
            "control_port": free_port(),
            "folder": str(tmp_path / "outside"),
            "receiver_class": receiver_class,
        } | settings

        def launch() -> subprocess.Popen[bytes]:
            return start("zerotail.lab.receiver", config)

        control = ReceiverControl(int(str(config["control_port"])))
        return ReceiverBench(launch, int(str(config["port"])), control, tmp_path / "outside", deadline, launch())

    return begin


@pytest.fixture
def receiver(open_receiver: Callable[..., ReceiverBench]) -> ReceiverBench:
    return open_receiver("R2")


@pytest.fixture
def bench(
    start: Callable[..., subprocess.Popen[bytes]], free_port: Callable[[], int], deadline: Deadline
) -> Iterator[LinkBench]:
    ways = (EAST_WEST, WEST_EAST)
    targets = {way: socket.create_server(("127.0.0.1", free_port()), backlog=256) for way in ways}
    ports = {way: free_port() for way in targets}
    control_port = free_port()
    forwards = [
        {
            "name": f"{way}.echo",
            "from": way[:4],
            "to": way[-4:],
            "listen_port": ports[way],
            "target_port": target.getsockname()[1],
        }
        for way, target in targets.items()
    ]
    process = start("zerotail.lab.link", {"control_port": control_port, "forwards": forwards})
    bench = LinkBench(LinkControl(control_port), process, ports, targets, deadline)
    yield bench
    for opened in [*bench.opened, *targets.values()]:
        opened.close()
