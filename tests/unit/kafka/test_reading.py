"""A coordinator that is coming up is asked again, and only an end counts as the end of a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.cursor import SETTINGS
from zerotail.kafka.reading import READING, ask_coordinator, messages_to_end

pytestmark = pytest.mark.fast

PLACE = TopicPartition("orders", 0, 7)


def coordinator(*said: int | TopicPartition) -> Any:
    """One that answers these in turn: an error's number is raised."""
    answers: Iterator[int | TopicPartition] = iter(said)

    def ask(_seconds: float) -> list[TopicPartition]:
        answer = next(answers)
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return [answer]

    return ask


@pytest.mark.parametrize(
    "early",
    [
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError._WAIT_COORD,
    ],
)
def test_a_coordinator_that_is_coming_up_is_asked_again(early: int) -> None:
    assert ask_coordinator(coordinator(early, early, PLACE), Deadline.after(30)) == [PLACE]


def test_a_coordinator_that_never_comes_up_is_told_at_the_deadline() -> None:
    with pytest.raises(KafkaException, match="NOT_COORDINATOR"):
        ask_coordinator(coordinator(*[KafkaError.NOT_COORDINATOR] * 100), Deadline.after(0.3))


def test_any_other_error_is_told_at_once() -> None:
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        ask_coordinator(coordinator(KafkaError.GROUP_AUTHORIZATION_FAILED, PLACE), Deadline.after(30))


@dataclass(frozen=True)
class Said:
    """A message as far as it is looked at."""

    number: int
    failed: KafkaError | None = None

    def error(self) -> KafkaError | None:
        return self.failed

    def partition(self) -> int:
        return self.number


def test_a_log_is_read_until_each_partition_has_ended() -> None:
    end = KafkaError(KafkaError._PARTITION_EOF)
    turns = iter([[Said(0), Said(0, end)], [Said(1)], [Said(1, end), Said(0)]])
    found = messages_to_end(lambda *_: next(turns), 2, "orders", Deadline.after(30))  # type: ignore[arg-type]
    assert [one.partition() for one in found] == [0, 1, 0]


def test_an_error_is_not_taken_for_the_end_of_a_log() -> None:
    lost = [Said(0), Said(0, KafkaError(KafkaError._ALL_BROKERS_DOWN))]
    found = messages_to_end(lambda *_: lost, 1, "orders", Deadline.after(30))  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="orders cannot be read"):
        list(found)


def test_the_mirror_reads_with_the_settings_of_every_reader_and_what_is_committed_alone() -> None:
    assert {**READING, **SETTINGS, "fetch.wait.max.ms": READING["fetch.wait.max.ms"]} == READING
    assert READING["isolation.level"] == "read_committed"
