"""Numbers of messages to the outside.

A message is owed on a **lane**: a channel, the partition of the stage it came from and, for a channel that
is a topic, the target partition. Numbers are dense per lane. They are given when the segment is decided, so
they are a function of the journal: after a takeover the same number means the same bytes (I7).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber
from zerotail.errors import Broken

LaneKey = tuple[ChannelName, PartitionNumber]
"""Channel and target partition: what distinguishes the lanes of one stage and partition."""


class Lane(NamedTuple):
    """One numbered sequence of messages."""

    channel: ChannelName
    partition: PartitionNumber
    """Of the stage the messages came from."""
    target: PartitionNumber = PartitionNumber(0)
    """Of the topic they go to; 0 for receivers that have none."""


Owed = Mapping[LaneKey, tuple[EmissionNumber, Sequence[bytes]]]
"""The messages of one segment: per lane the first number, and the messages from it on."""

_LENGTH = struct.Struct("<I")


def number_emissions(numbers: Mapping[LaneKey, EmissionNumber], said: Mapping[LaneKey, Sequence[bytes]]) -> Owed:
    """Give the messages of each lane the numbers behind its last one, in the order in which they were said."""
    return {key: (EmissionNumber(numbers.get(key, 0) + 1), values) for key, values in said.items()}


def pack_messages(messages: Sequence[bytes]) -> bytes:
    """Messages as one value: each behind its length."""
    pack = _LENGTH.pack
    return b"".join([part for message in messages for part in (pack(len(message)), message)])


def unpack_messages(packed: bytes, count: int) -> list[bytes]:
    """The messages of one packed value; `Broken` when it does not hold just so many."""
    messages = []
    place = 0
    while place + _LENGTH.size <= len(packed):
        (length,) = _LENGTH.unpack_from(packed, place)
        place += _LENGTH.size
        messages.append(packed[place : place + length])
        place += length
    if len(messages) != count or place != len(packed):
        raise Broken(f"an outbox row says {count} messages and holds {len(messages)} in {len(packed)} bytes")
    return messages
