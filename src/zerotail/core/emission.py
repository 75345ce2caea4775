"""Numbers of messages to the outside.

A message is owed on a **lane**: a channel, the partition of the stage it came from and, for a channel that
is a topic, the target partition. Numbers are dense per lane. They are given when the segment is decided, so
they are a function of the journal: after a takeover the same number means the same bytes (I7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber

LaneKey = tuple[ChannelName, PartitionNumber]
"""Channel and target partition: what distinguishes the lanes of one stage and partition."""


class Lane(NamedTuple):
    """One numbered sequence of messages."""

    channel: ChannelName
    partition: PartitionNumber
    """Of the stage the messages came from."""
    target: PartitionNumber = PartitionNumber(0)
    """Of the topic they go to; 0 for receivers that have none."""


@dataclass(frozen=True, slots=True)
class Owed:
    """One numbered message of one segment."""

    key: LaneKey
    number: EmissionNumber
    value: bytes


def number_emissions(
    numbers: Mapping[LaneKey, EmissionNumber], said: Iterable[tuple[LaneKey, bytes]]
) -> tuple[Owed, ...]:
    """Give each message the number behind the last one of its lane, in the order in which they were said."""
    last = dict(numbers)
    owed: list[Owed] = []
    for key, value in said:
        number = EmissionNumber(last.get(key, 0) + 1)
        last[key] = number
        owed.append(Owed(key, number, value))
    return tuple(owed)


def by_lane(owed: Iterable[Owed]) -> dict[LaneKey, tuple[EmissionNumber, list[bytes]]]:
    """The messages of one segment packed for the outbox: per lane the first number and the values behind
    it.
    """
    packed: dict[LaneKey, tuple[EmissionNumber, list[bytes]]] = {}
    for one in owed:
        packed.setdefault(one.key, (one.number, []))[1].append(one.value)
    return packed
