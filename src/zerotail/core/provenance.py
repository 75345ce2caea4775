"""The header `zt-from`: where a mirrored record comes from, in one packed value.

    byte   0        1..3       4..7        8..15    16..31     32…
           version  reserved   partition   offset   topic id   cluster/topic

Numbers are big endian, so that SQL can read them with `conv(hex(…), 16, 10)`. The topic id is Kafka's own and differs
for every topic ever made: a topic that was deleted and made again under its old name is told apart by it. The names
at the end are for people and for programs that know no ids.

1. A record gets one such header from each mirror that it passes, the nearest source last.
2. A record that names a cluster in one of them is never copied into that cluster: nothing runs in a circle.
3. For one origin the offsets in a target's partition only grow. So the last one says how far a mirror has come, and the
   log itself is the map from offsets of the source to offsets of the target.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.errors import Refused

HEADER_NAME = "zt-from"
VERSION = 1
TOPIC_ID_BYTES = 16
FIXED_BYTES = 16 + TOPIC_ID_BYTES
_FIXED = struct.Struct(">B3sIQ16s")
_NO_RESERVED = bytes(3)

Headers = Iterable[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Origin:
    """One partition of one log of a source cluster."""

    cluster: str
    topic: TopicName
    topic_id: bytes
    partition: PartitionNumber


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one record was read.

    >>> origin = Origin("east", TopicName("audit"), bytes(16), PartitionNumber(3))
    >>> decode(stamper(origin)(41)) == Provenance(origin, Offset(41))
    True
    """

    origin: Origin
    offset: Offset


def stamper(origin: Origin) -> Callable[[int], bytes]:
    """A function from an offset to the header's value: all but the offset is put together once."""
    tail = origin.topic_id + f"{origin.cluster}/{origin.topic}".encode()
    layout = struct.Struct(f">8sQ{len(tail)}s")
    head = struct.pack(">B3sI", VERSION, _NO_RESERVED, origin.partition)
    pack = layout.pack
    return lambda offset: pack(head, offset, tail)


def decode(data: bytes) -> Provenance:
    """The provenance that these bytes are; refused if they are none that this version can read."""
    if len(data) < FIXED_BYTES or data[0] != VERSION or data[1:4] != _NO_RESERVED:
        raise _unreadable(data)
    _, _, partition, offset, topic_id = _FIXED.unpack_from(data)
    try:
        cluster, slash, topic = data[FIXED_BYTES:].decode().partition("/")
    except UnicodeDecodeError as error:
        raise _unreadable(data) from error
    if not slash:
        raise _unreadable(data)
    return Provenance(Origin(cluster, TopicName(topic), topic_id, PartitionNumber(partition)), Offset(offset))


def find_provenance(headers: Headers) -> Provenance | None:
    """The nearest source of a record: its last provenance."""
    found = [value for name, value in headers if name == HEADER_NAME and value is not None]
    return decode(found[-1]) if found else None


def passed_clusters(headers: Headers) -> tuple[str, ...]:
    """The clusters that a record has come through, the first one first."""
    return tuple(decode(value).origin.cluster for name, value in headers if name == HEADER_NAME and value is not None)


def _unreadable(data: bytes) -> Refused:
    return Refused(
        f"a record has a {HEADER_NAME} header that this version cannot read: {data[:8].hex()}… ({len(data)} bytes).",
        code="ZT490",
        why="A newer version or somebody else wrote it; taken for a local record, it could run in a circle.",
    )
