"""The link as a process: real sockets on both of its sides."""

from __future__ import annotations

import hashlib
import json
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Unavailable
from zerotail.lab.link import CutMode, LinkControl

EAST_WEST = "east->west"
WEST_EAST = "west->east"
MEGABYTE = 1024 * 1024


@dataclass
class Bench:
    """A link with one forward in each direction, and a listening socket behind each."""

    control: LinkControl
    process: subprocess.Popen[bytes]
    ports: dict[str, int]
    targets: dict[str, socket.socket]
    deadline: Deadline
    opened: list[socket.socket] = field(default_factory=list)

    def call(self, way: str = EAST_WEST) -> socket.socket:
        """Connect through the link, without asking whether the target noticed."""
        client = socket.create_connection(("127.0.0.1", self.ports[way]), timeout=self.deadline.seconds_left)
        self.opened.append(client)
        return client

    def answer(self, way: str = EAST_WEST) -> socket.socket:
        """The target's end of the next connection."""
        self.targets[way].settimeout(self.deadline.seconds_left)
        server, _ = self.targets[way].accept()
        server.settimeout(self.deadline.seconds_left)
        self.opened.append(server)
        return server

    def connect(self, way: str = EAST_WEST) -> tuple[socket.socket, socket.socket]:
        """Both ends of a new connection."""
        client = self.call(way)
        return client, self.answer(way)


@pytest.fixture
def bench(
    start: Callable[..., subprocess.Popen[bytes]], free_port: Callable[[], int], deadline: Deadline
) -> Iterator[Bench]:
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
    bench = Bench(LinkControl(control_port), process, ports, targets, deadline)
    yield bench
    for opened in [*bench.opened, *targets.values()]:
        opened.close()


def receive(end: socket.socket, count: int) -> bytes:
    """Exactly so many bytes; fewer only if the stream ended."""
    pieces = bytearray()
    while len(pieces) < count and (piece := end.recv(min(MEGABYTE, count - len(pieces)))):
        pieces += piece
    return bytes(pieces)


def digest_of_everything(end: socket.socket) -> str:
    digest = hashlib.sha256()
    while piece := end.recv(MEGABYTE):
        digest.update(piece)
    return digest.hexdigest()


def fill(end: socket.socket) -> int:
    """Send until the way is full; how many bytes it took."""
    end.setblocking(False)
    sent = 0
    while select.select([], [end], [], 0.2)[1]:
        sent += end.send(bytes(65536))
    return sent


def is_silent(end: socket.socket, seconds: float = 0.15) -> bool:
    """Whether nothing arrives for that long: that something does not happen can only be watched."""
    return not select.select([end], [], [], seconds)[0]


def test_bytes_arrive_unchanged_in_both_directions_at_once(bench: Bench) -> None:
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


@pytest.mark.parametrize("latency_ms", [20.0, 120.0])
def test_a_delay_lies_on_each_direction_and_keeps_throughput(bench: Bench, latency_ms: float) -> None:
    east, west = bench.connect()
    status = bench.control.delay(latency_ms, deadline=bench.deadline).status
    assert {way.latency_ms for way in status.ways} == {latency_ms}

    began = time.monotonic()
    east.sendall(b"ping")
    assert receive(west, 4) == b"ping"
    there = time.monotonic()
    west.sendall(b"pong")
    assert receive(east, 4) == b"pong"
    back = time.monotonic()

    assert latency_ms / 1000 <= there - began < latency_ms / 1000 + 0.1
    assert latency_ms / 1000 <= back - there < latency_ms / 1000 + 0.1

    # A sleep per piece would need at least one latency for each 512 kB: more than 2 s at 20 ms.
    total = 64 * MEGABYTE
    sender = threading.Thread(target=east.sendall, args=[bytes(total)])
    began = time.monotonic()
    sender.start()
    assert len(receive(west, total)) == total
    taken = time.monotonic() - began
    sender.join()
    assert taken < latency_ms / 1000 + 1.5


def test_bytes_sent_under_a_shorter_delay_do_not_overtake_those_sent_before(bench: Bench) -> None:
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


def test_a_delay_holds_for_one_direction_only_if_told_so(bench: Bench) -> None:
    east, west = bench.connect()
    bench.control.delay(200, WEST_EAST, deadline=bench.deadline)
    began = time.monotonic()
    east.sendall(b"quick")
    assert receive(west, 5) == b"quick"
    assert time.monotonic() - began < 0.15
    west.sendall(b"slow")
    assert receive(east, 4) == b"slow"
    assert time.monotonic() - began >= 0.2


def test_a_hanging_cut_is_silence_and_heal_continues_the_same_connection(bench: Bench) -> None:
    east, west = bench.connect()
    done = bench.control.cut(deadline=bench.deadline)
    assert done.evidence.connections_stalled == 1
    assert [way.cut for way in done.status.ways] == [CutMode.HANG, CutMode.HANG]

    east.sendall(b"from east")
    west.sendall(b"from west")
    assert is_silent(west)
    assert is_silent(east, 0)
    assert bench.control.status(deadline=bench.deadline).way(EAST_WEST).delivered_bytes == 0

    bench.control.heal(deadline=bench.deadline)
    assert receive(west, 9) == b"from east"
    assert receive(east, 9) == b"from west"


@pytest.mark.parametrize("opener", [EAST_WEST, WEST_EAST])
def test_a_one_way_cut_stops_the_bytes_of_that_direction_whoever_opened_the_connection(
    bench: Bench, opener: str
) -> None:
    client, server = bench.connect(opener)
    east, west = (client, server) if opener == EAST_WEST else (server, client)
    bench.control.cut(EAST_WEST, deadline=bench.deadline)

    west.sendall(b"passes")
    assert receive(east, 6) == b"passes"
    east.sendall(b"waits")
    assert is_silent(west)

    bench.control.heal(EAST_WEST, deadline=bench.deadline)
    assert receive(west, 5) == b"waits"


@pytest.mark.parametrize("direction", [EAST_WEST, WEST_EAST, "both"])
def test_new_connections_reach_nobody_until_a_hanging_cut_heals(bench: Bench, direction: str) -> None:
    bench.control.cut(direction, deadline=bench.deadline)
    client = bench.call()
    client.sendall(b"anybody?")
    assert is_silent(bench.targets[EAST_WEST])

    bench.control.heal(deadline=bench.deadline)
    assert receive(bench.answer(), 8) == b"anybody?"


def test_who_came_during_a_cut_and_left_before_it_healed_never_existed(bench: Bench) -> None:
    bench.control.cut(deadline=bench.deadline)
    gone = bench.call()
    gone.sendall(b"a payment that its sender gave up")
    gone.close()
    bench.control.heal(deadline=bench.deadline)
    assert is_silent(bench.targets[EAST_WEST])
    assert bench.control.status(deadline=bench.deadline).forward("east->west.echo").connections_total == 0


def test_during_a_hanging_cut_neither_end_learns_that_the_other_died(bench: Bench) -> None:
    east, west = bench.connect()
    bench.control.cut(deadline=bench.deadline)
    east.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    east.close()
    assert is_silent(west)
    bench.control.heal(deadline=bench.deadline)
    with pytest.raises(ConnectionResetError):
        west.recv(1)


def test_a_resetting_cut_resets_what_exists_and_refuses_what_comes(bench: Bench) -> None:
    east, west = bench.connect()
    done = bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    assert done.evidence.connections_reset == 1
    for end in (east, west):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    with pytest.raises(ConnectionRefusedError):
        bench.call()

    bench.control.heal(deadline=bench.deadline)
    east, west = bench.connect()
    east.sendall(b"again")
    assert receive(west, 5) == b"again"


def test_a_reset_may_turn_into_silence_and_back(bench: Bench) -> None:
    bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    bench.control.cut(mode=CutMode.HANG, deadline=bench.deadline)
    waiting = bench.call()
    bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    with pytest.raises(ConnectionResetError):
        waiting.recv(1)


def test_held_bytes_are_taken_in_up_to_the_limit_and_delivered_in_order_on_release(bench: Bench) -> None:
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


def test_two_connections_share_the_limit_of_a_hold(bench: Bench) -> None:
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


def test_a_throttle_sets_the_speed_of_all_connections_together_and_can_be_taken_off(bench: Bench) -> None:
    pairs = [bench.connect(), bench.connect()]
    bench.control.throttle(1_000_000, EAST_WEST, deadline=bench.deadline)
    began = time.monotonic()
    for east, _ in pairs:
        east.sendall(bytes(200_000))
    assert [len(receive(west, 200_000)) for _, west in pairs] == [200_000, 200_000]
    taken = time.monotonic() - began
    assert 0.35 < taken < 0.8

    bench.control.throttle(1, EAST_WEST, deadline=bench.deadline)
    east, west = pairs[0]
    east.sendall(bytes(50_000))
    bench.control.throttle(None, EAST_WEST, deadline=bench.deadline)
    began = time.monotonic()
    assert len(receive(west, 50_000)) == 50_000
    assert time.monotonic() - began < 2


def test_a_throttle_shares_the_speed_fairly(bench: Bench) -> None:
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


def test_a_receiver_that_does_not_read_holds_the_sender_back(bench: Bench) -> None:
    east, west = bench.connect()
    taken = fill(east)
    held = bench.control.status(deadline=bench.deadline).way(EAST_WEST).held_bytes
    assert 0 < held <= MEGABYTE
    east.settimeout(bench.deadline.seconds_left)
    east.shutdown(socket.SHUT_WR)
    assert len(receive(west, taken + 1)) == taken


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_is_commanded_during_a_stream_every_byte_arrives_after_it_heals(
    bench: Bench, seed: int
) -> None:
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
        lambda direction: control.hold(
            direction, limit_bytes=chance.randrange(1, MEGABYTE), deadline=deadline
        ),
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


def test_counters_tell_bytes_and_connections_per_forward_and_direction(bench: Bench) -> None:
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


def test_a_half_closed_connection_goes_on_in_its_other_direction(bench: Bench) -> None:
    east, west = bench.connect()
    east.sendall(b"question")
    east.shutdown(socket.SHUT_WR)
    assert receive(west, 100) == b"question"
    west.sendall(b"answer")
    west.close()
    assert receive(east, 100) == b"answer"


def test_a_client_that_dies_after_its_half_close_is_noticed_by_the_target(bench: Bench) -> None:
    east, west = bench.connect()
    east.shutdown(socket.SHUT_WR)
    assert west.recv(1) == b""
    east.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    east.close()

    def fails() -> bool:
        try:
            west.sendall(b"x")
        except OSError:
            return True
        return False

    wait_until("the target notices", fails, bench.deadline)
    wait_until(
        "the link forgets the connection",
        lambda: (
            bench.control.status(deadline=bench.deadline).forward("east->west.echo").connections_open == 0
        ),
        bench.deadline,
    )


def test_when_the_target_is_down_the_client_is_reset_and_the_link_lives(bench: Bench) -> None:
    bench.targets[EAST_WEST].close()
    client = bench.call()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    forward = bench.control.status(deadline=bench.deadline).forward("east->west.echo")
    assert (forward.connections_failed, forward.connections_open) == (1, 0)
    east, west = bench.connect(WEST_EAST)
    east.sendall(b"fine")
    assert receive(west, 4) == b"fine"


def test_two_hundred_connections_pass_at_once(bench: Bench) -> None:
    pairs = [bench.connect() for _ in range(200)]
    for number, (east, _) in enumerate(pairs):
        east.sendall(b"%4d" % number)
    assert [receive(west, 4) for _, west in pairs] == [b"%4d" % number for number in range(200)]
    done = bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    assert done.evidence.connections_reset == 200


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
    bench: Bench, line: bytes, complaint: str
) -> None:
    before = bench.control.status(deadline=bench.deadline)
    with socket.create_connection(("127.0.0.1", bench.control.port), timeout=5) as connection:
        connection.sendall(line)
        answer = json.loads(connection.makefile("rb").readline())
    assert answer["answer"] == "declined"
    assert complaint in answer["error"]
    assert bench.control.status(deadline=bench.deadline) == before


def test_the_client_tells_a_wrong_request_from_an_absent_link(
    bench: Bench, free_port: Callable[[], int]
) -> None:
    with pytest.raises(Misused, match="north"):
        bench.control.cut("north", deadline=bench.deadline)
    with pytest.raises(Unavailable, match="does not answer"):
        LinkControl(free_port()).status(deadline=bench.deadline)


@pytest.mark.parametrize("busy", [False, True])
def test_sigterm_ends_the_link_at_once(bench: Bench, busy: bool) -> None:
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


def test_a_taken_port_is_refused_by_its_number(bench: Bench, tmp_path: Path) -> None:
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
