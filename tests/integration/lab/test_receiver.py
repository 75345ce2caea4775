"""The receiver as a process, spoken to as the protocol page says."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Unavailable
from zerotail.lab.receiver import ClaimAttempt, MessageAttempt, ReceiverControl, Verdict

Json = dict[str, Any]


def message(number: int, body: bytes | None = None, **changes: object) -> Json:
    content = b"message %d" % number if body is None else body
    fields: Json = {
        "channel": "bank",
        "partition": 0,
        "number": number,
        "epoch": 257,
        "incarnation": 1,
        "site": "east",
        "body": base64.b64encode(content).decode(),
    }
    return fields | changes


def batch(numbers: list[int], **changes: object) -> Json:
    envelope = {name: value for name, value in message(1).items() if name not in ("number", "body")}
    items = [{"number": number, "body": message(number)["body"]} for number in numbers]
    return envelope | {"messages": items} | changes


@dataclass
class Bench:
    """One receiver process that can be killed and started again on the same folder."""

    begin: Callable[[], subprocess.Popen[bytes]]
    port: int
    control: ReceiverControl
    folder: Path
    deadline: Deadline
    process: subprocess.Popen[bytes]

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.deadline.seconds_left)

    def ask(self, method: str, path: str, content: Json | bytes | None = None) -> tuple[int, Json]:
        connection = self.connection()
        try:
            connection.request(method, path, json.dumps(content) if isinstance(content, dict) else content)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def post(self, path: str, content: Json) -> tuple[int, Json]:
        return self.ask("POST", path, content)

    def send(self, number: int, body: bytes | None = None, **changes: object) -> tuple[int, str]:
        """Post one message; the status and the verdict."""
        status, answer = self.post("/messages", message(number, body, **changes))
        return status, answer["verdict"]

    def last(self, channel: str = "bank", partition: int = 0) -> int | None:
        status, answer = self.ask("GET", f"/last?channel={channel}&partition={partition}")
        assert status == 200
        last: int | None = answer["last_accepted"]
        return last

    def attempts(self) -> list[MessageAttempt]:
        entries = self.control.attempts(deadline=self.deadline)
        return [entry for entry in entries if isinstance(entry, MessageAttempt)]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.process = self.begin()


@pytest.fixture
def open_receiver(
    start: Callable[..., subprocess.Popen[bytes]],
    free_port: Callable[[], int],
    tmp_path: Path,
    deadline: Deadline,
) -> Callable[..., Bench]:
    def begin(receiver_class: str = "R2", **settings: object) -> Bench:
        config = {
            "port": free_port(),
            "control_port": free_port(),
            "folder": str(tmp_path / "outside"),
            "receiver_class": receiver_class,
        } | settings

        def launch() -> subprocess.Popen[bytes]:
            return start("zerotail.lab.receiver", config)

        control = ReceiverControl(int(str(config["control_port"])))
        return Bench(launch, int(str(config["port"])), control, tmp_path / "outside", deadline, launch())

    return begin


@pytest.fixture
def receiver(open_receiver: Callable[..., Bench]) -> Bench:
    return open_receiver("R2")


# ------------------------------------------------------------------------------------------- the four classes


@pytest.mark.parametrize("receiver_class", ["R0", "R2"])
def test_r0_and_r2_take_only_the_next_number(
    open_receiver: Callable[..., Bench], receiver_class: str
) -> None:
    receiver = open_receiver(receiver_class)
    assert receiver.send(2) == (409, "gap_refused")
    assert receiver.send(1) == (200, "accepted")
    assert receiver.send(1) == (200, "repeat_dropped")
    assert receiver.send(3) == (409, "gap_refused")
    assert receiver.send(2) == (200, "accepted")
    assert receiver.last() == 2


def test_r0_does_not_look_at_the_sender(open_receiver: Callable[..., Bench]) -> None:
    receiver = open_receiver("R0")
    assert receiver.send(1, epoch=900) == (200, "accepted")
    assert receiver.send(2, epoch=1) == (200, "accepted")


def test_r1_drops_a_repeated_number_and_takes_anything_else(open_receiver: Callable[..., Bench]) -> None:
    receiver = open_receiver("R1")
    assert [receiver.send(number) for number in (5, 2, 5, 2, 1, 9)] == [
        (200, "accepted"),
        (200, "accepted"),
        (200, "repeat_dropped"),
        (200, "repeat_dropped"),
        (200, "accepted"),
        (200, "accepted"),
    ]
    assert receiver.send(5, partition=1) == (200, "accepted")
    assert receiver.send(5, channel="other") == (200, "accepted")


def test_r2_refuses_an_older_sender_from_the_claim_on_before_it_looks_at_the_number(receiver: Bench) -> None:
    assert receiver.send(1, epoch=257, incarnation=3) == (200, "accepted")
    claim = {"channel": "bank", "epoch": 257, "incarnation": 5, "site": "east"}
    assert receiver.post("/claims", claim) == (
        200,
        {"last_accepted": {"0": 1}, "highest": {"epoch": 257, "incarnation": 5}},
    )
    for number in (1, 2, 3):
        assert receiver.send(number, epoch=257, incarnation=4) == (409, "older_epoch_refused")
    assert receiver.send(2, epoch=257, incarnation=5) == (200, "accepted")
    # The epoch weighs more than the incarnation.
    assert receiver.post("/claims", claim | {"epoch": 512, "incarnation": 0, "site": "west"})[0] == 200
    assert receiver.send(3, epoch=257, incarnation=99) == (409, "older_epoch_refused")


def test_r2_refuses_an_older_claim_and_takes_a_repeated_one(receiver: Bench) -> None:
    claim = {"channel": "bank", "epoch": 512, "incarnation": 1, "site": "west"}
    assert receiver.post("/claims", claim)[0] == 200
    assert receiver.post("/claims", claim)[0] == 200
    status, answer = receiver.post("/claims", claim | {"epoch": 257, "site": "east"})
    assert status == 409
    assert answer["highest"] == {"epoch": 512, "incarnation": 1}
    assert "older" in answer["error"]
    entries = list(receiver.control.attempts(deadline=receiver.deadline))
    assert [(type(entry), entry.epoch, entry.verdict) for entry in entries] == [
        (ClaimAttempt, 512, Verdict.ACCEPTED),
        (ClaimAttempt, 512, Verdict.ACCEPTED),
        (ClaimAttempt, 257, Verdict.OLDER_EPOCH_REFUSED),
    ]


def test_r2_is_also_claimed_by_an_accepted_message_but_not_by_a_refused_one(receiver: Bench) -> None:
    assert receiver.send(7, epoch=900) == (409, "gap_refused")
    assert receiver.send(1, epoch=257) == (200, "accepted")
    assert receiver.send(2, epoch=512) == (200, "accepted")
    assert receiver.send(3, epoch=257) == (409, "older_epoch_refused")


def test_r3_takes_everything_and_answers_nothing_about_it_while_the_record_notes_it_all(
    open_receiver: Callable[..., Bench],
) -> None:
    receiver = open_receiver("R3")
    assert [receiver.send(number)[1] for number in (4, 4, 1)] == ["accepted"] * 3
    assert receiver.last() is None
    assert [attempt.number for attempt in receiver.attempts()] == [4, 4, 1]
    totals = receiver.control.totals(deadline=receiver.deadline).of("bank", 0)
    assert (totals.accepted, totals.distinct, totals.repeats_accepted, totals.out_of_order) == (3, 2, 1, 1)


def test_a_channel_may_have_a_class_of_its_own(open_receiver: Callable[..., Bench]) -> None:
    receiver = open_receiver("R2", channels={"audit": "R1"})
    assert receiver.send(7, channel="audit") == (200, "accepted")
    assert receiver.send(7, channel="bank") == (409, "gap_refused")
    assert receiver.control.status(deadline=receiver.deadline).channels == {"audit": "R1", "bank": "R2"}


# ---------------------------------------------------------------------------------------------------- batches


def test_a_batch_is_judged_in_order_and_a_repeat_does_not_stop_it(receiver: Bench) -> None:
    assert receiver.post("/batches", batch([1, 2, 3])) == (
        200,
        {"verdicts": ["accepted"] * 3, "last_accepted": 3},
    )
    status, answer = receiver.post("/batches", batch([2, 3, 4]))
    assert (status, answer["verdicts"]) == (200, ["repeat_dropped", "repeat_dropped", "accepted"])


def test_behind_the_first_refused_message_of_a_batch_nothing_has_an_effect(receiver: Bench) -> None:
    status, answer = receiver.post("/batches", batch([1, 3, 2, 1]))
    assert status == 409
    assert answer["verdicts"] == ["accepted", "gap_refused", "behind_refused", "behind_refused"]
    assert answer["last_accepted"] == 1
    assert "number 3 leaves a gap behind 1" in answer["error"]
    assert receiver.last() == 1
    assert [attempt.number for attempt in receiver.attempts()] == [1, 3, 2, 1]


def test_a_batch_with_one_malformed_message_is_rejected_as_a_whole(receiver: Bench) -> None:
    content = batch([1, 2])
    content["messages"][1]["number"] = 0
    status, answer = receiver.post("/batches", content)
    assert status == 400
    assert "messages[1].number" in answer["error"] or "messages[...].number" in answer["error"]
    assert receiver.last() == 0
    assert receiver.attempts() == []


# ----------------------------------------------------------------------------------------- what is remembered


def test_every_attempt_is_remembered_with_its_digest_and_whether_the_bytes_were_the_same(
    receiver: Bench,
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


def test_attempts_come_in_pages_that_join_without_a_gap(receiver: Bench) -> None:
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
    open_receiver: Callable[..., Bench], receiver_class: str
) -> None:
    receiver = open_receiver(receiver_class)
    receiver.post("/batches", batch([1, 2, 3, 2]))
    receiver.post("/claims", {"channel": "bank", "epoch": 512, "incarnation": 7, "site": "west"})
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


def test_what_was_answered_survives_a_kill_in_the_middle_of_the_load(receiver: Bench) -> None:
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


def test_a_last_line_without_its_end_is_cut_off(receiver: Bench) -> None:
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
def test_a_damaged_file_is_not_opened(receiver: Bench, tmp_path: Path, damage: bytes | str) -> None:
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
    receiver: Bench, tmp_path: Path, free_port: Callable[[], int]
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


# -------------------------------------------------------------------------------------------------- behaviour


def test_a_lost_answer_leaves_the_message_stored(receiver: Bench) -> None:
    receiver.control.misbehave(lose_answers=2, deadline=receiver.deadline)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        receiver.send(1)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        receiver.post("/batches", batch([2, 3]))
    assert receiver.last() == 3
    assert receiver.send(3, possible_duplicate=True) == (200, "repeat_dropped")
    assert receiver.control.behaviour(deadline=receiver.deadline).lose_answers == 0


def test_a_slow_answer_leaves_the_message_stored_at_once(receiver: Bench) -> None:
    receiver.control.misbehave(slow_ms=60_000, deadline=receiver.deadline)
    connection = receiver.connection()
    connection.request("POST", "/messages", json.dumps(message(1)))
    wait_until("the message is stored", lambda: receiver.last() == 1, receiver.deadline)
    connection.close()

    receiver.control.misbehave(slow_ms=150, deadline=receiver.deadline)
    started = Deadline.after(0)
    assert receiver.send(2) == (200, "accepted")
    assert Deadline.after(0).at - started.at >= 0.15


def test_an_unavailable_receiver_judges_nothing(receiver: Bench) -> None:
    receiver.control.misbehave(unavailable=True, deadline=receiver.deadline)
    status, answer = receiver.post("/messages", message(1))
    assert status == 503
    assert "unavailable" in answer["error"]
    assert receiver.ask("GET", "/last?channel=bank&partition=0")[0] == 503
    assert receiver.attempts() == []
    receiver.control.behave(deadline=receiver.deadline)
    assert receiver.send(1) == (200, "accepted")


def test_connections_are_refused_until_the_receiver_is_normal_again(receiver: Bench) -> None:
    standing = receiver.connection()
    standing.request("POST", "/messages", json.dumps(message(1)))
    assert standing.getresponse().read()
    behaviour = receiver.control.misbehave(refuse_seconds=600, deadline=receiver.deadline)
    assert 590 < behaviour.refuse_seconds <= 600
    assert standing.sock.recv(1) == b""
    standing.close()
    with pytest.raises(ConnectionRefusedError):
        receiver.send(2)
    assert receiver.control.behave(deadline=receiver.deadline).refuse_seconds == 0
    assert receiver.send(2) == (200, "accepted")


def test_a_refusal_ends_by_itself(receiver: Bench) -> None:
    receiver.control.misbehave(refuse_seconds=0.2, deadline=receiver.deadline)
    with pytest.raises(ConnectionRefusedError):
        receiver.send(1)

    def is_open() -> bool:
        try:
            return receiver.send(1)[0] == 200
        except ConnectionRefusedError:
            return False

    wait_until("the receiver lets connections in again", is_open, receiver.deadline)


def test_without_a_control_port_both_sides_share_the_port_and_refusing_is_declined(
    start: Callable[..., subprocess.Popen[bytes]],
    free_port: Callable[[], int],
    tmp_path: Path,
    deadline: Deadline,
) -> None:
    port = free_port()
    start("zerotail.lab.receiver", {"port": port, "folder": str(tmp_path / "outside")})
    control = ReceiverControl(port)
    with pytest.raises(Misused, match="control_port"):
        control.misbehave(refuse_seconds=1, deadline=deadline)
    assert control.misbehave(unavailable=True, deadline=deadline).unavailable
    assert control.totals(deadline=deadline).partitions == ()


def test_the_control_port_does_not_take_messages_and_the_port_does_not_judge(receiver: Bench) -> None:
    assert receiver.ask("GET", "/attempts")[0] == 404
    with pytest.raises(Unavailable, match="does not answer"):
        ReceiverControl(1).status(deadline=receiver.deadline)
    with pytest.raises(Misused, match="slow_ms"):
        receiver.control.misbehave(slow_ms=-1, deadline=receiver.deadline)


# ------------------------------------------------------------------------------------------------ concurrency


def test_many_connections_at_once_keep_each_partition_in_order(receiver: Bench) -> None:
    failures: list[object] = []

    def send_partition(partition: int) -> None:
        connection = receiver.connection()
        for first in range(1, 101, 10):
            content = batch(list(range(first, first + 10)), partition=partition)
            connection.request("POST", "/batches", json.dumps(content))
            answer = connection.getresponse()
            body = json.loads(answer.read())
            if answer.status != 200:
                failures.append(body)
        connection.close()

    threads = [threading.Thread(target=send_partition, args=[partition]) for partition in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    totals = receiver.control.totals(deadline=receiver.deadline)
    assert [(of.partition, of.accepted, of.missing) for of in totals.partitions] == [
        (partition, 100, 0) for partition in range(16)
    ]
    assert [attempt.sequence for attempt in receiver.attempts()] == list(range(1, 1601))


def test_two_senders_of_the_same_number_have_one_effect(receiver: Bench) -> None:
    verdicts: list[str] = []

    def send_all() -> None:
        verdicts.extend(receiver.send(1)[1] for _ in range(10))

    threads = [threading.Thread(target=send_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(verdicts) == ["accepted"] + ["repeat_dropped"] * 39


# -------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "missing", ["channel", "partition", "number", "epoch", "incarnation", "site", "body"]
)
def test_a_missing_field_is_named(receiver: Bench, missing: str) -> None:
    content = {name: value for name, value in message(1).items() if name != missing}
    status, answer = receiver.post("/messages", content)
    assert status == 400
    assert missing in answer["error"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("number", 0),
        ("number", -1),
        ("number", 2**63),
        ("number", "1"),
        ("number", True),
        ("number", None),
        ("number", 1.5),
        ("partition", -1),
        ("partition", 2**31),
        ("epoch", 0),
        ("incarnation", -1),
        ("channel", ""),
        ("channel", "x" * 201),
        ("channel", "line\n"),
        ("channel", 7),
        ("site", ""),
        ("body", "not base64!"),
        ("body", 5),
        ("possible_duplicate", "yes"),
        ("colour", "red"),
    ],
)
def test_a_wrong_field_is_refused_with_a_sentence_and_nothing_is_remembered(
    receiver: Bench, field: str, value: object
) -> None:
    status, answer = receiver.post("/messages", message(1) | {field: value})
    assert status == 400
    assert field in answer["error"] or field == "body"
    assert receiver.attempts() == []


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"POST /messages HTTP/1.1\r\nContent-Length: 4\r\n\r\nnope", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
        (b"POST /batches HTTP/1.1\r\nContent-Length: 400000\r\n\r\n" + b"[" * 400_000, 400),
        (b"POST /messages HTTP/1.1\r\n\r\n", 411),
        (b"POST /messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST /messages HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST /messages HTTP/1.1\r\nContent-Length : 1\r\n\r\na", 400),
        (b"GET /last HTTP/1.1\r\n\r\n", 400),
        (b"GET /last?channel=bank&partition=x HTTP/1.1\r\n\r\n", 400),
        (b"GET /last?channel=bank&partition=-1 HTTP/1.1\r\n\r\n", 400),
        (b"GET /last?channel=%ff&partition=0 HTTP/1.1\r\n\r\n", 400),
        (b"GET /messages HTTP/1.1\r\n\r\n", 405),
        (b"BREW /messages HTTP/1.1\r\n\r\n", 405),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"GET //[ HTTP/1.1\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /last HTTP/1.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", 431),
    ],
)
def test_a_wrong_request_gets_its_status_and_a_sentence_and_the_receiver_lives(
    receiver: Bench, raw: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
        connection.sendall(raw)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == status
        assert json.loads(answer.read())["error"]
    assert receiver.send(1) == (200, "accepted")


def test_a_connection_goes_on_after_a_wrong_body(receiver: Bench) -> None:
    connection = receiver.connection()
    for content, status in ((b"nope", 400), (json.dumps(message(1)).encode(), 200), (b"{}", 400)):
        connection.request("POST", "/messages", content)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_a_body_over_the_limit_is_not_read(open_receiver: Callable[..., Bench]) -> None:
    receiver = open_receiver("R1", max_body_bytes=100_000)
    status, answer = receiver.post("/messages", message(1, os.urandom(200_000)))
    assert status == 413
    assert "100000" in answer["error"]
    assert receiver.send(1, os.urandom(60_000)) == (200, "accepted")


def test_a_request_that_breaks_off_is_no_attempt(receiver: Bench) -> None:
    content = json.dumps(message(1)).encode()
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
        connection.sendall(
            b"POST /messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(content) + content[:-1]
        )
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert receiver.attempts() == []


def test_one_connection_too_many_is_told_so(receiver: Bench) -> None:
    idle = [socket.create_connection(("127.0.0.1", receiver.port), timeout=5) for _ in range(128)]
    try:
        status, answer = receiver.ask("GET", "/last?channel=bank&partition=0")
        assert status == 503
        assert "128" in answer["error"]
    finally:
        for connection in idle:
            connection.close()

    def is_served() -> bool:
        return receiver.ask("GET", "/last?channel=bank&partition=0")[0] == 200

    wait_until("the receiver takes connections again", is_served, receiver.deadline)


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(receiver: Bench) -> None:
    content = json.dumps(message(1)).encode()
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as connection:
        connection.sendall(
            b"POST /messages HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(content)
        )
        file = connection.makefile("rb")
        assert file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert file.readline() == b"\r\n"
        connection.sendall(content)
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        file.close()


def test_sigterm_ends_the_receiver_at_once(receiver: Bench) -> None:
    receiver.control.misbehave(slow_ms=60_000, deadline=receiver.deadline)
    connection = receiver.connection()
    connection.request("POST", "/messages", json.dumps(message(1)))
    wait_until("the message is stored", lambda: receiver.last() == 1, receiver.deadline)
    receiver.process.send_signal(signal.SIGTERM)
    assert receiver.process.wait(timeout=2) == 0
    connection.close()
