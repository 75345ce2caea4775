"""What goes through the link arrives as it was sent, and is counted."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import threading
from collections.abc import Callable

import pytest

from integration.lab.link_bench import (
    EAST_WEST,
    MEGABYTE,
    WEST_EAST,
    LinkBench,
    digest_of_everything,
    kill,
    receive,
)
from zerotail.deadline import wait_until
from zerotail.lab.link import CutMode

pytestmark = pytest.mark.fast


def test_bytes_arrive_unchanged_in_both_directions_at_once(bench: LinkBench) -> None:
    noise = random.Random(7)
    east, west = bench.connect()
    payloads = {end: noise.randbytes(8 * MEGABYTE + 13) for end in (east, west)}
    expected = {end: hashlib.sha256(payload).hexdigest() for end, payload in payloads.items()}
    received: dict[socket.socket, str] = {}

    def speak(end: socket.socket) -> None:
        view, chance = memoryview(payloads[end]), random.Random(len(expected[end]))
        while view:
            size = min(len(view), chance.choice([1, 7, 1500, 70_000, 300_000]))
            end.sendall(view[:size])
            view = view[size:]
        end.shutdown(socket.SHUT_WR)

    def listen(end: socket.socket) -> None:
        received[end] = digest_of_everything(end)

    threads = [threading.Thread(target=act, args=[end]) for act in (speak, listen) for end in (east, west)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(bench.deadline.seconds_left)

    assert received == {east: expected[west], west: expected[east]}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_is_commanded_during_a_stream_every_byte_arrives_after_it_heals(bench: LinkBench, seed: int) -> None:
    chance = random.Random(seed)
    east, west = bench.connect()
    payload = chance.randbytes(24 * MEGABYTE)
    senders = [threading.Thread(target=end.sendall, args=[payload]) for end in (east, west)]
    received: dict[socket.socket, bytes] = {}

    def listen(end: socket.socket) -> None:
        received[end] = receive(end, len(payload))

    listeners = [threading.Thread(target=listen, args=[end]) for end in (east, west)]
    for thread in [*senders, *listeners]:
        thread.start()
    control, deadline = bench.control, bench.deadline
    commands: list[Callable[[str], object]] = [
        lambda direction: control.cut(direction, deadline=deadline),
        lambda direction: control.heal(direction, deadline=deadline),
        lambda direction: control.hold(direction, limit_bytes=chance.randrange(1, MEGABYTE), deadline=deadline),
        lambda direction: control.release(direction, deadline=deadline),
        lambda direction: control.delay(chance.choice([0, 0.5, 5]), direction, deadline=deadline),
        lambda direction: control.throttle(chance.choice([None, 10**6, 10**9]), direction, deadline=deadline),
    ]
    for _ in range(150):
        chance.choice(commands)(chance.choice([EAST_WEST, WEST_EAST, "both"]))
    for command in (control.heal, control.release):
        command(deadline=deadline)
    control.delay(0, deadline=deadline)
    control.throttle(None, deadline=deadline)
    for thread in [*senders, *listeners]:
        thread.join(deadline.seconds_left)
    assert received == {east: payload, west: payload}
    status = control.status(deadline=deadline)
    assert [(way.delivered_bytes, way.held_bytes) for way in status.ways] == [(len(payload), 0)] * 2


def test_counters_tell_bytes_and_connections_per_forward_and_direction(bench: LinkBench) -> None:
    east, west = bench.connect(EAST_WEST)
    bench.connect(WEST_EAST)
    east.sendall(bytes(1000))
    receive(west, 1000)
    west.sendall(bytes(50))
    receive(east, 50)

    status = bench.control.status(deadline=bench.deadline)
    forward = status.forward("east->west.echo")
    assert forward.toward(EAST_WEST).delivered_bytes == 1000
    assert forward.toward(WEST_EAST).delivered_bytes == 50
    assert (forward.connections_open, forward.connections_total) == (1, 1)
    assert status.forward("west->east.echo").toward(WEST_EAST).delivered_bytes == 0
    assert status.way(EAST_WEST).delivered_bytes == 1000

    east.close()
    west.close()

    def is_forgotten() -> bool:
        forward = bench.control.status(deadline=bench.deadline).forward("east->west.echo")
        return (forward.connections_open, forward.connections_total) == (0, 1)

    wait_until("the link forgets the closed connection", is_forgotten, bench.deadline)


def test_a_half_closed_connection_goes_on_in_its_other_direction(bench: LinkBench) -> None:
    east, west = bench.connect()
    east.sendall(b"question")
    east.shutdown(socket.SHUT_WR)
    assert receive(west, 100) == b"question"
    west.sendall(b"answer")
    west.close()
    assert receive(east, 100) == b"answer"


def test_a_client_that_dies_after_its_half_close_is_noticed_by_the_target(bench: LinkBench) -> None:
    east, west = bench.connect()
    east.shutdown(socket.SHUT_WR)
    assert west.recv(1) == b""
    kill(east)

    def fails() -> bool:
        try:
            west.sendall(b"x")
        except OSError:
            return True
        return False

    wait_until("the target notices", fails, bench.deadline)
    wait_until(
        "the link forgets the connection",
        lambda: bench.control.status(deadline=bench.deadline).forward("east->west.echo").connections_open == 0,
        bench.deadline,
    )


def test_two_hundred_connections_pass_at_once(bench: LinkBench) -> None:
    pairs = [bench.connect() for _ in range(200)]
    for number, (east, _) in enumerate(pairs):
        east.sendall(b"%4d" % number)
    assert [receive(west, 4) for _, west in pairs] == [b"%4d" % number for number in range(200)]
    done = bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    assert done.evidence.connections_reset == 200


@pytest.mark.parametrize("seed", [1, 2])
def test_ends_that_die_at_any_moment_leave_nothing_behind(bench: LinkBench, seed: int) -> None:
    chance = random.Random(seed)
    control, deadline = bench.control, bench.deadline
    faults: list[Callable[[], object]] = [
        lambda: control.cut(chance.choice([EAST_WEST, WEST_EAST]), deadline=deadline),
        lambda: control.hold(chance.choice([EAST_WEST, WEST_EAST]), deadline=deadline),
        lambda: control.delay(5, deadline=deadline),
        lambda: control.throttle(100_000, deadline=deadline),
    ]
    for _ in range(40):
        east, west = bench.connect()
        for end in chance.sample([east, west], k=chance.randrange(3)):
            end.sendall(bytes(chance.randrange(1, 3000)))
        fault = chance.choice(faults)
        fault()
        for end in chance.sample([east, west], k=2):
            chance.choice([kill, socket.socket.close])(end)
        for heal in (control.heal, control.release):
            heal(deadline=deadline)

    def is_empty() -> bool:
        status = control.status(deadline=deadline)
        held_bytes = sum(way.held_bytes for way in status.ways)
        return status.forward("east->west.echo").connections_open == 0 and held_bytes == 0

    wait_until("the link has forgotten every connection", is_empty, deadline)
    descriptors = len(os.listdir(f"/proc/{bench.process.pid}/fd"))
    assert descriptors < 30
