"""How much the laboratory's own programs cost: the link against a direct connection, the receiver's speed.

    python bench/outside.py [link] [receiver]

The link and the receiver stand in every measurement of the whole system. They must be faster than what they
stand between, or a benchmark of the system would measure its laboratory.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zerotail.bench.processor import own_cpu_seconds
from zerotail.deadline import Deadline
from zerotail.lab.link import LinkControl

SOURCES = Path(__file__).parents[1] / "src"
STREAM_BYTES = 1024 * 1024 * 1024
PIECE = bytes(128 * 1024)
ROUND_TRIPS = 5000
MESSAGE_BYTES = 200


def main() -> None:
    """Run what was asked for, or everything."""
    wanted = sys.argv[1:] or ["link", "receiver"]
    if "link" in wanted:
        measure_link()
    if "receiver" in wanted:
        measure_receiver()


def measure_link() -> None:
    """Throughput of one stream and the time of one round trip, direct and through the link."""
    with socket.create_server(("127.0.0.1", free_port())) as target:
        target_port: int = target.getsockname()[1]
        listen_port, control_port = free_port(), free_port()
        forward = {
            "name": "bench",
            "from": "east",
            "to": "west",
            "listen_port": listen_port,
            "target_port": target_port,
        }
        with process("zerotail.lab.link", {"control_port": control_port, "forwards": [forward]}):
            direct = stream_speed(target, target_port)
            linked = stream_speed(target, listen_port)
            print(f"stream, direct            {direct:8.0f} MB/s")
            print(f"stream, link              {linked:8.0f} MB/s   {linked / direct:.2f} of direct")
            control = LinkControl(control_port)
            for latency_ms in (1, 10, 50):
                control.delay(latency_ms, deadline=Deadline.after(5))
                delayed = stream_speed(target, listen_port)
                ratio = delayed / direct
                print(f"stream, link {latency_ms:3} ms       {delayed:8.0f} MB/s   {ratio:.2f} of direct")
            control.delay(0, deadline=Deadline.after(5))
            near, far = round_trip_seconds(target, target_port), round_trip_seconds(target, listen_port)
            print(f"round trip, direct        {near * 1e6:8.0f} µs")
            print(f"round trip, link          {far * 1e6:8.0f} µs   {(far - near) * 1e6:.0f} µs more")


def measure_receiver() -> None:
    """Messages a second in batches and one by one, and what the receiver's process spent on each."""
    for batch_size, connections, batches in ((500, 1, 400), (500, 4, 400), (1, 1, 1500), (1, 16, 6000)):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            port = free_port()
            config = {"port": port, "folder": folder, "receiver_class": "R2"}
            with process("zerotail.lab.receiver", config) as pid:
                spent_before = own_cpu_seconds(pid)
                taken = _send_batches(port, batch_size, batches // connections, connections)
                spent = own_cpu_seconds(pid) - spent_before
        count = batch_size * batches
        print(
            f"receiver, {batch_size:3} a batch, {connections:2} connections {count / taken:8.0f} messages/s"
            f"   {count / spent:8.0f} per second of its processor"
        )


def _send_batches(port: int, batch_size: int, batches: int, connections: int) -> float:
    """Seconds from the first request to the last answer; each connection sends a partition of its own."""
    bodies = [
        [_batch_body(partition, 1 + index * batch_size, batch_size) for index in range(batches)]
        for partition in range(connections)
    ]
    threads = [threading.Thread(target=_post_all, args=[port, own]) for own in bodies]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _batch_body(partition: int, first: int, count: int) -> bytes:
    body = base64.b64encode(bytes(MESSAGE_BYTES)).decode()
    return json.dumps(
        {
            "channel": "bank",
            "partition": partition,
            "epoch": 257,
            "incarnation": 1,
            "site": "east",
            "messages": [{"number": number, "body": body} for number in range(first, first + count)],
        }
    ).encode()


def _post_all(port: int, bodies: list[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in bodies:
        connection.request("POST", "/batches", body)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()


def stream_speed(target: socket.socket, port: int) -> float:
    """MB/s of one stream from a connection to `port` until it arrives at the target."""
    with socket.create_connection(("127.0.0.1", port)) as source:
        sink, _ = target.accept()
        with sink:
            sender = threading.Thread(target=_send_stream, args=[source])
            began = time.perf_counter()
            sender.start()
            buffer, received = bytearray(1024 * 1024), 0
            while received < STREAM_BYTES:
                received += sink.recv_into(buffer)
            taken = time.perf_counter() - began
            sender.join()
    return STREAM_BYTES / taken / 1e6


def _send_stream(source: socket.socket) -> None:
    for _ in range(STREAM_BYTES // len(PIECE)):
        source.sendall(PIECE)


def round_trip_seconds(target: socket.socket, port: int) -> float:
    """The mean time of a small question and its answer."""
    with socket.create_connection(("127.0.0.1", port)) as source:
        sink, _ = target.accept()
        with sink:
            echo = threading.Thread(target=_echo, args=[sink])
            echo.start()
            began = time.perf_counter()
            for _ in range(ROUND_TRIPS):
                source.sendall(b"?" * 100)
                source.recv(100)
            taken = time.perf_counter() - began
            source.shutdown(socket.SHUT_WR)
            echo.join()
    return taken / ROUND_TRIPS


def _echo(sink: socket.socket) -> None:
    while piece := sink.recv(100):
        sink.sendall(piece)


@contextmanager
def process(module: str, config: object) -> Iterator[int]:
    """One program of the laboratory, ready, and ended afterwards; its process id."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        running = subprocess.Popen(
            [sys.executable, "-m", module, "--config", file.name],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(SOURCES)},
        )
        assert running.stdout is not None
        try:
            assert b"ready" in running.stdout.readline()
            yield running.pid
        finally:
            running.terminate()
            running.wait()
            running.stdout.close()


def free_port() -> int:
    """A port that nobody listens on."""
    while True:
        port = random.randrange(20000, 32768)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


if __name__ == "__main__":
    main()
