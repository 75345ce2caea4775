"""How the receiver misbehaves when a drill asks for it."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from integration.lab.receiver_bench import ReceiverBench, batch, message
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Unavailable
from zerotail.lab.receiver import ReceiverControl

pytestmark = pytest.mark.fast


def test_a_lost_answer_leaves_the_message_stored(receiver: ReceiverBench) -> None:
    receiver.control.misbehave(lose_answers=2, deadline=receiver.deadline)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        receiver.send(1)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        receiver.post("/batches", batch([2, 3]))
    assert receiver.last() == 3
    assert receiver.send(3, possible_duplicate=True) == (200, "repeat_dropped")
    assert receiver.control.behaviour(deadline=receiver.deadline).lose_answers == 0


def test_a_slow_answer_leaves_the_message_stored_at_once(receiver: ReceiverBench) -> None:
    receiver.control.misbehave(slow_ms=60_000, deadline=receiver.deadline)
    connection = receiver.connection()
    connection.request("POST", "/messages", json.dumps(message(1)))
    wait_until("the message is stored", lambda: receiver.last() == 1, receiver.deadline)
    connection.close()

    receiver.control.misbehave(slow_ms=150, deadline=receiver.deadline)
    started = Deadline.after(0)
    assert receiver.send(2) == (200, "accepted")
    assert Deadline.after(0).at - started.at >= 0.15


def test_an_unavailable_receiver_judges_nothing(receiver: ReceiverBench) -> None:
    receiver.control.misbehave(unavailable=True, deadline=receiver.deadline)
    status, answer = receiver.post("/messages", message(1))
    assert status == 503
    assert "unavailable" in answer["error"]
    assert receiver.ask("GET", "/last?channel=bank&partition=0")[0] == 503
    assert receiver.attempts() == []
    receiver.control.behave(deadline=receiver.deadline)
    assert receiver.send(1) == (200, "accepted")


def test_connections_are_refused_until_the_receiver_is_normal_again(receiver: ReceiverBench) -> None:
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


def test_a_refusal_ends_by_itself(receiver: ReceiverBench) -> None:
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


def test_the_control_port_does_not_take_messages_and_the_port_does_not_judge(receiver: ReceiverBench) -> None:
    assert receiver.ask("GET", "/attempts")[0] == 404
    with pytest.raises(Unavailable, match="does not answer"):
        ReceiverControl(1).status(deadline=receiver.deadline)
    with pytest.raises(Misused, match="slow_ms"):
        receiver.control.misbehave(slow_ms=-1, deadline=receiver.deadline)


def test_a_detained_message_is_judged_when_it_is_set_free_and_not_before(receiver: ReceiverBench) -> None:
    receiver.control.misbehave(detain=1, deadline=receiver.deadline)
    answered: list[object] = []
    sender = Thread(target=lambda: answered.append(receiver.send(1)))
    sender.start()
    wait_until(
        "it is detained", lambda: receiver.control.behaviour(deadline=receiver.deadline).detained, receiver.deadline
    )
    assert receiver.last() == 0
    assert receiver.control.behaviour(deadline=receiver.deadline).detain == 0
    receiver.control.misbehave(detain=0, deadline=receiver.deadline)
    sender.join()
    assert answered == [(200, "accepted")]
    assert receiver.last() == 1
