"""Send records on to another cluster as they are, each with one header more: where it comes from.

This is the hot path of a mirror, one turn of a loop for each record: what can be done once for all of them is done
outside, and the producer is called by position, for names cost a quarter of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from zerotail.core.identity import Offset
from zerotail.core.provenance import HEADER_NAME, passed_clusters
from zerotail.kafka.copy_order import Order

Stamp = Callable[[int], bytes]
"""Makes the header of the record at an offset (`core.provenance.stamper`)."""
_DRAIN_SECONDS = 0.05
_GONE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)


class LostPlaceError(Exception):
    """The log does not reach to the place that was asked for."""


@dataclass(slots=True)
class Carried:
    """How far a log was read and sent on, and how much that was."""

    next_offset: Offset
    last_copied: Offset
    copied: int = 0
    left_out: int = 0
    bytes: int = 0
    at_end: bool = False
    """Whether nothing came behind what was read last."""


def carry(order: Order, stamp: Stamp, writer: Producer, messages: Sequence[Message], carried: Carried) -> None:
    """Queue records in order, and add them to what was carried."""
    produce, topic, partition = writer.produce, order.target_topic, order.partition
    next_offset, last, copied, size = carried.next_offset, carried.last_copied, 0, 0
    at_end = False
    for message in messages:
        error = message.error()
        if error is not None:
            next_offset, at_end = max(next_offset, _end(error, message)), True
            continue
        at_end = False
        offset: Any = message.offset()
        headers, value = message.headers(), message.value()
        next_offset = offset + 1
        stamped: Any = [(HEADER_NAME, stamp(offset))]
        if headers:
            if _came_from_a_mirror(order, headers):
                carried.left_out += 1
                continue
            stamped = [*headers, *stamped]
        while True:
            try:
                produce(topic, value, message.key(), partition, None, None, message.timestamp()[1], stamped)
                break
            except BufferError:  # the queue is full: let it drain
                writer.poll(_DRAIN_SECONDS)
        last = offset
        copied += 1
        if value is not None:
            size += len(value)
    carried.next_offset, carried.last_copied, carried.at_end = next_offset, last, at_end
    carried.copied += copied
    carried.bytes += size


def _end(error: KafkaError, message: Message) -> Offset:
    """Where the log ends; markers of transactions there have offsets, too. Raises what is no end."""
    if error.code() == KafkaError._PARTITION_EOF:
        return Offset(message.offset() or 0)
    if error.code() in _GONE:
        raise LostPlaceError("the place is not in the source's log any more; looking again")
    raise KafkaException(error)


def _came_from_a_mirror(order: Order, headers: Any) -> bool:
    """Whether a record must not be copied: it has been at the target, or in an active-active mirror anywhere."""
    passed = passed_clusters(headers)
    return bool(passed) and (order.flow.local_only or order.flow.target in passed)
