"""What the receiver remembers, also after `kill -9`, and what it does when it cannot."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.lab.receiver_bench import Json, ReceiverBench, batch, message
from zerotail.deadline import Deadline
from zerotail.lab.receiver import MessageAttempt

pytestmark = pytest.mark.fast


def test_every_attempt_is_remembered_with_its_digest_and_whether_the_bytes_were_the_same(
    receiver: ReceiverBench,
) -> None:
    receiver.send(2, b"too early")
    receiver.send(1, b"one")
    receiver.send(1, b"one", possible_duplicate=True)
    receiver.send(1, b"other", epoch=512, site="west")
    receiver.send(2, b"in time")
    attempts = receiver.attempts()
    assert [attempt.sequence for attempt in attempts] == [1, 2, 3, 4, 5]
    assert [(attempt.verdict.value, attempt.same_bytes) for attempt in attempts] == [
        ("gap_refused", None),
        ("accepted", None),
        ("repeat_dropped", True),
        ("repeat_dropped", False),
        ("accepted", False),
    ]
    third = attempts[2]
    assert third.digest == hashlib.sha256(b"one").hexdigest()
    assert (third.possible_duplicate, third.size_bytes, third.site) == (True, 3, "east")
    assert (attempts[3].epoch, attempts[3].site, attempts[3].receiver_class) == (512, "west", "R2")
    totals = receiver.control.totals(deadline=receiver.deadline).of("bank", 0)
    assert (totals.different_bytes, totals.repeats_dropped, totals.gaps_refused) == (2, 2, 1)


def test_attempts_come_in_pages_that_join_without_a_gap(receiver: ReceiverBench) -> None:
    receiver.post("/batches", batch(list(range(1, 701))))
    numbers: list[int] = []
    since = 0
    while True:
        page = receiver.control.attempts_page(since, 99, deadline=receiver.deadline)
        if not page.attempts:
            break
        assert page.end_sequence == 700
        numbers += [attempt.number for attempt in page.attempts if isinstance(attempt, MessageAttempt)]
        since = page.attempts[-1].sequence
    assert numbers == list(range(1, 701))
    assert receiver.control.attempts_page(10_000, deadline=receiver.deadline).attempts == ()


@pytest.mark.parametrize("receiver_class", ["R0", "R1", "R2", "R3"])
def test_after_kill_and_restart_everything_is_known_again(
    open_receiver: Callable[..., ReceiverBench], receiver_class: str
) -> None:
    receiver = open_receiver(receiver_class)
    receiver.post("/batches", batch([1, 2, 3, 2]))
    receiver.post("/claims", {"channel": "bank", "partition": 0, "epoch": 512, "incarnation": 7, "site": "west"})
    receiver.send(9, b"nine", channel="audit", partition=4)

    def knowledge() -> tuple[object, ...]:
        control, deadline = receiver.control, receiver.deadline
        last = receiver.ask("GET", "/last?channel=bank&partition=0")
        return list(control.attempts(deadline=deadline)), control.totals(deadline=deadline), last

    before = knowledge()
    receiver.restart()
    assert knowledge() == before
    expected = {"R0": "repeat_dropped", "R1": "repeat_dropped", "R2": "older_epoch_refused", "R3": "accepted"}
    assert receiver.send(3)[1] == expected[receiver_class]
    assert receiver.attempts()[-1].same_bytes is True


def test_what_was_answered_survives_a_kill_in_the_middle_of_the_load(receiver: ReceiverBench) -> None:
    answered: list[int] = []
    halfway = threading.Event()

    def load() -> None:
        connection = receiver.connection()
        number = 0
        try:
            while True:
                content = json.dumps(batch(list(range(number + 1, number + 51))))
                connection.request("POST", "/batches", content)
                answered.append(json.loads(connection.getresponse().read())["last_accepted"])
                number += 50
                if len(answered) == 20:
                    halfway.set()
        except (OSError, http.client.HTTPException):
            connection.close()

    sender = threading.Thread(target=load)
    sender.start()
    assert halfway.wait(receiver.deadline.seconds_left)
    receiver.kill()
    sender.join()
    receiver.process = receiver.begin()
    last = receiver.last()
    assert last is not None
    # One batch may be stored and not answered, never the other way round.
    assert answered[-1] <= last <= answered[-1] + 50


def test_a_last_line_without_its_end_is_cut_off(receiver: ReceiverBench) -> None:
    receiver.post("/batches", batch([1, 2]))
    receiver.kill()
    file = receiver.folder / "attempts.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 4])
    receiver.process = receiver.begin()
    assert file.read_bytes() == whole
    assert receiver.send(3) == (200, "accepted")
    assert [attempt.sequence for attempt in receiver.attempts()] == [1, 2, 3]


def run_to_the_end(config: Json, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "other.json"
    path.write_text(json.dumps(config))
    return subprocess.run(
        [sys.executable, "-m", "zerotail.lab.receiver", "--config", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


@pytest.mark.parametrize("damage", [b"garbage\n", b'{"kind":"claim"}\n', "the first line again"])
def test_a_damaged_file_is_not_opened(receiver: ReceiverBench, tmp_path: Path, damage: bytes | str) -> None:
    receiver.post("/batches", batch([1, 2]))
    receiver.kill()
    file = receiver.folder / "attempts.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + (damage if isinstance(damage, bytes) else first) + second)
    ended = run_to_the_end({"port": receiver.port, "folder": str(receiver.folder)}, tmp_path)
    assert ended.returncode == 70
    assert "line 2" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_receivers_do_not_share_a_folder(
    receiver: ReceiverBench, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    ended = run_to_the_end({"port": free_port(), "folder": str(receiver.folder)}, tmp_path)
    assert ended.returncode == 3
    assert "another receiver" in ended.stderr


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"port": 0}, "port"),
        ({"colour": 1}, "colour"),
        ({"receiver_class": "R9"}, "R9"),
        ({"folder": 5}, "folder"),
    ],
)
def test_a_wrong_configuration_ends_with_one_sentence(tmp_path: Path, change: Json, complaint: str) -> None:
    ended = run_to_the_end({"port": 20000, "folder": str(tmp_path)} | change, tmp_path)
    assert ended.returncode == 2
    assert complaint in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_disk_that_refuses_ends_the_receiver_without_an_answer(
    start: Callable[..., subprocess.Popen[bytes]],
    free_port: Callable[[], int],
    tmp_path: Path,
    deadline: Deadline,
) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "attempts.jsonl").touch()
    port = free_port()
    process = start("zerotail.lab.receiver", {"port": port, "folder": str(folder)})
    # The kernel refuses to let the file of this process grow beyond a limit, as a full disk would.
    subprocess.run(["prlimit", f"--pid={process.pid}", "--fsize=100"], check=True)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=deadline.seconds_left)
    connection.request("POST", "/messages", json.dumps(message(1)))
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection.getresponse()
    connection.close()
    assert process.wait(deadline.seconds_left) == 70
