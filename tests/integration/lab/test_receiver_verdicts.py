"""What each class of receiver says to a message, a batch and a claim."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest

from integration.lab.receiver_bench import ReceiverBench, batch
from zerotail.lab.receiver import ClaimAttempt, Verdict

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("receiver_class", ["R0", "R2"])
def test_r0_and_r2_take_only_the_next_number(open_receiver: Callable[..., ReceiverBench], receiver_class: str) -> None:
    receiver = open_receiver(receiver_class)
    assert receiver.send(2) == (409, "gap_refused")
    assert receiver.send(1) == (200, "accepted")
    assert receiver.send(1) == (200, "repeat_dropped")
    assert receiver.send(3) == (409, "gap_refused")
    assert receiver.send(2) == (200, "accepted")
    assert receiver.last() == 2


def test_r0_does_not_look_at_the_sender(open_receiver: Callable[..., ReceiverBench]) -> None:
    receiver = open_receiver("R0")
    assert receiver.send(1, epoch=900) == (200, "accepted")
    assert receiver.send(2, epoch=1) == (200, "accepted")


def test_r1_drops_a_repeated_number_and_takes_anything_else(
    open_receiver: Callable[..., ReceiverBench],
) -> None:
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


def test_r2_refuses_an_older_sender_from_the_claim_on_before_it_looks_at_the_number(
    receiver: ReceiverBench,
) -> None:
    assert receiver.send(1, epoch=257, incarnation=3) == (200, "accepted")
    claim = {"channel": "bank", "partition": 0, "epoch": 257, "incarnation": 5, "site": "east"}
    assert receiver.post("/claims", claim) == (
        200,
        {
            "last_accepted": 1,
            "last_epoch": 257,
            "highest": {"epoch": 257, "incarnation": 5},
        },
    )
    for number in (1, 2, 3):
        assert receiver.send(number, epoch=257, incarnation=4) == (409, "older_epoch_refused")
    assert receiver.send(2, epoch=257, incarnation=5) == (200, "accepted")
    # The epoch weighs more than the incarnation.
    assert receiver.post("/claims", claim | {"epoch": 512, "incarnation": 0, "site": "west"})[0] == 200
    assert receiver.send(3, epoch=257, incarnation=99) == (409, "older_epoch_refused")


def test_r2_refuses_an_older_claim_and_takes_a_repeated_one(receiver: ReceiverBench) -> None:
    claim = {"channel": "bank", "partition": 0, "epoch": 512, "incarnation": 1, "site": "west"}
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


def test_r2_keeps_the_newest_sender_of_each_partition_apart(receiver: ReceiverBench) -> None:
    claim = {"channel": "bank", "partition": 0, "epoch": 257, "incarnation": 9, "site": "east"}
    assert receiver.post("/claims", claim)[0] == 200
    assert receiver.post("/claims", claim | {"partition": 1, "incarnation": 1}) == (
        200,
        {"last_accepted": 0, "last_epoch": None, "highest": {"epoch": 257, "incarnation": 1}},
    )
    assert receiver.send(1, partition=1, incarnation=1) == (200, "accepted")
    assert receiver.send(1, partition=0, incarnation=1) == (409, "older_epoch_refused")


def test_a_claim_hears_in_which_epoch_the_last_message_was_sent_however_often_it_is_made(
    receiver: ReceiverBench,
) -> None:
    claim = {"channel": "bank", "partition": 0, "epoch": 512, "incarnation": 1, "site": "west"}
    receiver.send(1, epoch=256)
    receiver.send(2, epoch=257)
    receiver.send(1, epoch=258)
    assert [receiver.post("/claims", claim)[1]["last_epoch"] for _ in range(2)] == [257, 257]


def test_r2_is_also_claimed_by_an_accepted_message_but_not_by_a_refused_one(receiver: ReceiverBench) -> None:
    assert receiver.send(7, epoch=900) == (409, "gap_refused")
    assert receiver.send(1, epoch=257) == (200, "accepted")
    assert receiver.send(2, epoch=512) == (200, "accepted")
    assert receiver.send(3, epoch=257) == (409, "older_epoch_refused")


def test_r3_takes_everything_and_answers_nothing_about_it_while_the_record_notes_it_all(
    open_receiver: Callable[..., ReceiverBench],
) -> None:
    receiver = open_receiver("R3")
    assert [receiver.send(number)[1] for number in (4, 4, 1)] == ["accepted"] * 3
    assert receiver.last() is None
    assert [attempt.number for attempt in receiver.attempts()] == [4, 4, 1]
    totals = receiver.control.totals(deadline=receiver.deadline).of("bank", 0)
    assert (totals.accepted, totals.distinct, totals.repeats_accepted, totals.out_of_order) == (3, 2, 1, 1)


def test_a_channel_may_have_a_class_of_its_own(open_receiver: Callable[..., ReceiverBench]) -> None:
    receiver = open_receiver("R2", channels={"audit": "R1"})
    assert receiver.send(7, channel="audit") == (200, "accepted")
    assert receiver.send(7, channel="bank") == (409, "gap_refused")
    assert receiver.control.status(deadline=receiver.deadline).channels == {"audit": "R1", "bank": "R2"}


def test_a_batch_is_judged_in_order_and_a_repeat_does_not_stop_it(receiver: ReceiverBench) -> None:
    assert receiver.post("/batches", batch([1, 2, 3])) == (
        200,
        {"verdicts": ["accepted"] * 3, "last_accepted": 3},
    )
    status, answer = receiver.post("/batches", batch([2, 3, 4]))
    assert (status, answer["verdicts"]) == (200, ["repeat_dropped", "repeat_dropped", "accepted"])


def test_behind_the_first_refused_message_of_a_batch_nothing_has_an_effect(receiver: ReceiverBench) -> None:
    status, answer = receiver.post("/batches", batch([1, 3, 2, 1]))
    assert status == 409
    assert answer["verdicts"] == ["accepted", "gap_refused", "behind_refused", "behind_refused"]
    assert answer["last_accepted"] == 1
    assert "number 3 leaves a gap behind 1" in answer["error"]
    assert receiver.last() == 1
    assert [attempt.number for attempt in receiver.attempts()] == [1, 3, 2, 1]


def test_a_batch_with_one_malformed_message_is_rejected_as_a_whole(receiver: ReceiverBench) -> None:
    content = batch([1, 2])
    content["messages"][1]["number"] = 0
    status, answer = receiver.post("/batches", content)
    assert status == 400
    assert "messages[1].number" in answer["error"] or "messages[...].number" in answer["error"]
    assert receiver.last() == 0
    assert receiver.attempts() == []


def test_many_connections_at_once_keep_each_partition_in_order(receiver: ReceiverBench) -> None:
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


def test_two_senders_of_the_same_number_have_one_effect(receiver: ReceiverBench) -> None:
    verdicts: list[str] = []

    def send_all() -> None:
        verdicts.extend(receiver.send(1)[1] for _ in range(10))

    threads = [threading.Thread(target=send_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(verdicts) == ["accepted"] + ["repeat_dropped"] * 39
