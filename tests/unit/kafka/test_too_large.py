"""Which record of a batch Kafka does not take for its size: those in front of it are sent, it is named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from zerotail.core.identity import Epoch, PartitionNumber, ProducerNumber, Serial, TopicName
from zerotail.kafka import producer
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.producer import RecordSender
from zerotail.ports import Batch, Done, Indefinite, SendRecords, TooLarge

pytestmark = pytest.mark.fast

LIMIT = 100


class Broker:
    """Takes values up to a limit; refuses a whole batch for one that is larger, or only what it is asked to queue."""

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once
        self.taken: list[bytes] = []
        self.waiting: list[bytes] = []
        self.on_delivery: Any = None

    def __call__(self, settings: dict[str, Any]) -> Broker:
        self.on_delivery = settings["on_delivery"]
        return self

    def produce(self, _topic: str, value: bytes, *_: object) -> None:
        if self.at_once and len(value) > LIMIT:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        self.waiting.append(value)

    def flush(self, _seconds: float) -> int:
        if any(len(value) > LIMIT for value in self.waiting):
            for _ in self.waiting:
                self.on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        else:
            self.taken += self.waiting
        self.waiting = []
        return 0

    def purge(self) -> None:
        self.waiting = []


def send(monkeypatch: pytest.MonkeyPatch, broker: Broker, sizes: Iterable[int]) -> Any:
    monkeypatch.setattr(producer, "Producer", broker)
    values = [bytes([place % 256]) * size for place, size in enumerate(sizes)]
    count = len(values)
    serials = [Serial(serial) for serial in range(1, count + 1)]
    batch = Batch([ProducerNumber(1)] * count, serials, [Epoch(256)] * count, [bytes(8)] * count, values)
    return RecordSender(Cluster("nowhere:1")).send(SendRecords(TopicName("t"), PartitionNumber(0), batch))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("sizes", "place"),
    [
        ([5] * 20, None),
        ([500], 0),
        ([5] * 9 + [500] + [5] * 9, 9),
        ([500] + [5] * 9, 0),
        ([5] * 9 + [500], 9),
        ([5, 200, 5, 5, 5, 5, 5, 5, 900], 1),
        ([90] * 7 + [101] + [90] * 9, 7),
    ],
)
def test_the_first_one_that_is_too_large_is_named_and_those_before_it_are_sent(
    monkeypatch: pytest.MonkeyPatch, at_once: bool, sizes: list[int], place: int | None
) -> None:
    broker = Broker(at_once=at_once)
    answer = send(monkeypatch, broker, sizes)
    if place is None:
        assert answer == Done()
        return
    assert isinstance(answer, TooLarge)
    assert answer.place == place
    assert {value[0] for value in broker.taken} >= set(range(place))
    assert all(len(value) <= LIMIT for value in broker.taken)


def test_what_is_refused_for_another_reason_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(at_once=False)
    monkeypatch.setattr(broker, "flush", lambda _: broker.on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT), None) or 0)
    assert send(monkeypatch, broker, [5, 500]) == Indefinite()
