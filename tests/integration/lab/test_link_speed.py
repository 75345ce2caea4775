"""Delay, hold and throttle: when bytes arrive."""

from __future__ import annotations

import random
import select
import socket
import threading
import time

import pytest

from integration.lab.link_bench import (
    EAST_WEST,
    MEGABYTE,
    WEST_EAST,
    LinkBench,
    fill,
    is_silent,
    receive,
)
from zerotail.deadline import wait_until

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("latency_ms", [20.0, 120.0])
def test_a_delay_lies_on_each_direction_and_keeps_throughput(bench: LinkBench, latency_ms: float) -> None:
    east, west = bench.connect()
    status = bench.control.delay(latency_ms, deadline=bench.deadline).status
    assert {way.latency_ms for way in status.ways} == {latency_ms}

    for speaker, listener in ((east, west), (west, east)):
        taken_seconds = []
        for _ in range(5):
            began = time.monotonic()
            speaker.sendall(b"ping")
            assert receive(listener, 4) == b"ping"
            taken_seconds.append(time.monotonic() - began)
        # Never too early; the best of some shows what the link adds when the machine is not busy elsewhere.
        assert latency_ms / 1000 <= min(taken_seconds) < latency_ms / 1000 + 0.01

    # A sleep per piece would need at least one latency for each 256 kB: more than 5 s at 20 ms.
    total = 64 * MEGABYTE
    sender = threading.Thread(target=east.sendall, args=[bytes(total)])
    began = time.monotonic()
    sender.start()
    assert len(receive(west, total)) == total
    taken = time.monotonic() - began
    sender.join()
    assert taken < 4


def test_bytes_sent_under_a_shorter_delay_do_not_overtake_those_sent_before(bench: LinkBench) -> None:
    east, west = bench.connect()
    control, deadline = bench.control, bench.deadline
    control.hold(EAST_WEST, deadline=deadline)
    for count, latency_ms in enumerate([0, 300, 0], 1):
        control.delay(latency_ms, EAST_WEST, deadline=deadline)
        east.sendall(b"%d" % count)

        def is_taken(count: int = count) -> bool:
            return control.status(deadline=deadline).way(EAST_WEST).held_bytes == count

        wait_until("the link has taken the byte", is_taken, deadline)
    control.release(EAST_WEST, deadline=deadline)
    assert receive(west, 3) == b"123"


def test_a_delay_holds_for_one_direction_only_if_told_so(bench: LinkBench) -> None:
    east, west = bench.connect()
    bench.control.delay(400, WEST_EAST, deadline=bench.deadline)
    began = time.monotonic()
    east.sendall(b"quick")
    assert receive(west, 5) == b"quick"
    assert time.monotonic() - began < 0.4
    west.sendall(b"slow")
    assert receive(east, 4) == b"slow"
    assert time.monotonic() - began >= 0.4


def test_held_bytes_are_taken_in_up_to_the_limit_and_delivered_in_order_on_release(bench: LinkBench) -> None:
    east, west = bench.connect()
    limit = 300_000
    bench.control.hold(EAST_WEST, limit_bytes=limit, deadline=bench.deadline)
    payload = random.Random(1).randbytes(3 * MEGABYTE)
    sender = threading.Thread(target=east.sendall, args=[payload])
    sender.start()

    def held() -> bool:
        return bench.control.status(deadline=bench.deadline).way(EAST_WEST).held_bytes == limit

    wait_until("the link holds its limit", held, bench.deadline)
    assert is_silent(west)
    assert held()
    west.sendall(b"the other direction flows")
    assert receive(east, 25) == b"the other direction flows"

    done = bench.control.release(EAST_WEST, deadline=bench.deadline)
    assert done.evidence.released_bytes == limit
    assert receive(west, len(payload)) == payload
    sender.join()


def test_two_connections_share_the_limit_of_a_hold(bench: LinkBench) -> None:
    (first, first_target), (second, second_target) = bench.connect(), bench.connect()
    bench.control.hold(EAST_WEST, limit_bytes=100_000, deadline=bench.deadline)
    first.sendall(bytes(80_000))
    first.sendall(bytes(80_000))

    def held_bytes() -> int:
        return bench.control.status(deadline=bench.deadline).way(EAST_WEST).held_bytes

    wait_until("the link holds its limit", lambda: held_bytes() == 100_000, bench.deadline)
    second.sendall(bytes(80_000))
    # Each question passes through the link's loop, which would have read the new bytes before it answers.
    assert [held_bytes() for _ in range(5)] == [100_000] * 5
    bench.control.release(deadline=bench.deadline)
    assert len(receive(first_target, 160_000)) == 160_000
    assert len(receive(second_target, 80_000)) == 80_000


def test_a_throttle_sets_the_speed_of_all_connections_together(bench: LinkBench) -> None:
    pairs = [bench.connect(), bench.connect()]
    bench.control.throttle(1_000_000, EAST_WEST, deadline=bench.deadline)
    began = time.monotonic()
    for east, _ in pairs:
        east.sendall(bytes(200_000))
    assert [len(receive(west, 200_000)) for _, west in pairs] == [200_000, 200_000]
    taken = time.monotonic() - began
    assert 0.35 < taken < 2


@pytest.mark.parametrize("new_speed", [None, 10_000_000])
def test_a_new_speed_holds_at_once_for_bytes_that_wait_already(bench: LinkBench, new_speed: int | None) -> None:
    pairs = [bench.connect() for _ in range(10)]
    bench.control.throttle(1, EAST_WEST, deadline=bench.deadline)
    for east, _ in pairs:
        east.sendall(bytes(50_000))

    def is_waiting() -> bool:
        return bench.control.status(deadline=bench.deadline).way(EAST_WEST).held_bytes > 450_000

    wait_until("the link has taken the bytes", is_waiting, bench.deadline)
    began = time.monotonic()
    bench.control.throttle(new_speed, EAST_WEST, deadline=bench.deadline)
    assert [len(receive(west, 50_000)) for _, west in pairs] == [50_000] * 10
    # At the old speed the tenth connection would have had its first byte after ten seconds.
    assert time.monotonic() - began < 5


def test_a_throttle_shares_the_speed_fairly(bench: LinkBench) -> None:
    first, second = bench.connect(), bench.connect()
    bench.control.throttle(2_000_000, EAST_WEST, deadline=bench.deadline)
    for east, _ in (first, second):
        threading.Thread(target=east.sendall, args=[bytes(400_000)], daemon=True).start()
    receive(first[1], 400_000)
    # When the first has all, the second must have nearly all too.
    second[1].setblocking(False)
    got = 0
    while select.select([second[1]], [], [], 0)[0]:
        got += len(second[1].recv(MEGABYTE))
    assert got > 300_000


def test_a_receiver_that_does_not_read_holds_the_sender_back(bench: LinkBench) -> None:
    east, west = bench.connect()
    taken = fill(east)
    held = bench.control.status(deadline=bench.deadline).way(EAST_WEST).held_bytes
    assert 0 < held <= MEGABYTE
    east.settimeout(bench.deadline.seconds_left)
    east.shutdown(socket.SHUT_WR)
    assert len(receive(west, taken + 1)) == taken
