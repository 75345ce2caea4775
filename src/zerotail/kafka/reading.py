"""Read what is committed, from a place that we know, and ask for what a group has committed: shared by the mirror.

A cluster that was just started has no coordinator for a group yet: it makes the topic of offsets at the first question,
loads it, and says so meanwhile. That is no answer, and it is asked again until the deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.cursor import SETTINGS

READING: Final = {
    **SETTINGS,
    "isolation.level": "read_committed",
    "check.crcs": True,
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 8_000_000,
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 131_072,
}
_PEEKING: Final = {**READING, "isolation.level": "read_uncommitted"}
"""For a look at what a group has committed last, whatever transaction is still open. The stable answer is kept back
until that has ended; one of a writer that was killed ends when the next one fences it, or after a minute."""
_COMING_UP = (
    KafkaError._WAIT_COORD,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
_AGAIN_SECONDS = 0.1
_AT_ONCE = 10_000
_ANSWER_SECONDS = 10.0


def ask_coordinator(ask: Callable[[float], list[TopicPartition]], deadline: Deadline) -> list[TopicPartition]:
    """What a group's coordinator answers; `ask` gets the seconds that are left. Raises what is wrong after all."""
    while True:
        try:
            found = ask(max(_AGAIN_SECONDS, deadline.seconds_left))
        except KafkaException as error:
            failed = error.args[0]
        else:
            failed = next((one.error for one in found if one.error is not None), None)
            if failed is None:
                return found
        if failed.code() not in _COMING_UP or deadline.passed:
            raise KafkaException(failed)
        time.sleep(min(_AGAIN_SECONDS, deadline.seconds_left))


@cache
def peeking(cluster: Cluster, group: str) -> Consumer:
    """A client that looks at what a group has committed; one for all who look in a process."""
    return Consumer({**_PEEKING, **cluster.for_client(), "group.id": group})


def read_committed(client: Consumer, asked: list[TopicPartition], deadline: Deadline) -> list[TopicPartition]:
    """What the client's group has committed for these partitions."""
    return ask_coordinator(lambda seconds: client.committed(asked, seconds), deadline) if asked else []


def partition_numbers(cluster: Cluster, topic: str) -> list[int]:
    """The partitions of a topic; none when there is no such topic."""
    client = Consumer({**READING, **cluster.for_client()})
    try:
        return sorted(client.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].partitions)
    except KafkaException as error:
        raise Unavailable(f"{topic} cannot be looked for: {error.args[0].str()}.", code="ZT553") from error
    finally:
        client.close()


def read_whole(cluster: Cluster, topic: str, partitions: Collection[int], deadline: Deadline) -> Iterator[Message]:
    """Every committed record of a topic, each partition's in order, up to where the logs end."""
    client = Consumer({**READING, **cluster.for_client()})
    try:
        client.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        yield from messages_to_end(client.consume, len(partitions), topic, deadline)
    finally:
        client.close()


def messages_to_end(
    consume: Callable[[int, float], list[Message]], partitions: int, topic: str, deadline: Deadline
) -> Iterator[Message]:
    """What comes until every partition has said that it ends; any other error is an error."""
    at_end: set[int | None] = set()
    while len(at_end) < partitions:
        if deadline.passed:
            raise Unavailable(f"{topic} cannot be read in time.", code="ZT553")
        for message in consume(_AT_ONCE, _AGAIN_SECONDS):
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
            else:
                raise Unavailable(f"{topic} cannot be read: {error.str()}.", code="ZT553")
