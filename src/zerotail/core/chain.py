"""Hash chains over what a stage took in and what it owes to the outside.

Each segment has two links: one over its input (which records, in which order, decided when and by which code)
and one over its emissions (channel, number, bytes). Two sites whose chains agree at a segment agree about
everything up to it; a replay that arrives at another hash must stop before it sends anything (I3, I11).

    chain(n) = sha256(chain(n - 1) || sha256(content(n)))

The content is laid out with fixed-width numbers and length-prefixed texts, so that no two contents share
bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import NewType

from zerotail.core.emission import Owed, pack_messages
from zerotail.core.identity import Epoch, Position, ProducerNumber, SegmentNumber, Serial
from zerotail.core.poison import Decided

Chain = NewType("Chain", bytes)

GENESIS = Chain(bytes(32))
"""The chain in front of the first segment."""

_HEADER = struct.Struct("<QQQq")
_RUN = struct.Struct("<IQI")
_LANE = struct.Struct("<IQII")
_DECISION = struct.Struct("<IBI")

Run = tuple[ProducerNumber, Serial, int]
"""Producer, first serial, count: consecutive positions filled by consecutive serials of one producer."""


def link(previous: Chain, content_hash: bytes) -> Chain:
    """The next link of a chain."""
    return Chain(sha256(previous + content_hash).digest())


def input_content(
    epoch: Epoch,
    segment: SegmentNumber,
    first_position: Position,
    decided_at: int,
    version: str,
    runs: Sequence[Run],
    digests: Sequence[bytes],
    decided: Sequence[Decided] = (),
) -> bytes:
    """The hash of what a segment took in; `decided_at`, `version` and what operators decided about records are inputs
    of the handler, so they count.
    """
    packed = b"".join([_RUN.pack(producer, serial, count) for producer, serial, count in runs])
    return packed_input_content(epoch, segment, first_position, decided_at, version, packed, b"".join(digests), decided)


def packed_input_content(
    epoch: Epoch,
    segment: SegmentNumber,
    first_position: Position,
    decided_at: int,
    version: str,
    runs: bytes,
    digests: bytes,
    decided: Sequence[Decided] = (),
) -> bytes:
    """The same for runs and digests that are laid out already: each run as producer, serial and count in 4, 8 and 4
    bytes, each digest in 8.
    """
    code = version.encode()
    parts = [_HEADER.pack(epoch, segment, first_position, decided_at), len(code).to_bytes(2, "little"), code]
    parts += [runs, digests]
    for place, decision in decided:
        parts += [_DECISION.pack(place, decision.remedy.number, len(decision.value)), decision.value]
    return sha256(b"".join(parts)).digest()


def output_content(owed: Owed) -> bytes:
    """The hash of what a segment owes to the outside: per lane the first number and the messages from it on.

    Lanes count in the order of their names, as the outbox keeps them, so the hash can be computed from it again.
    """
    content = sha256()
    for (channel, target), (first, values) in sorted(owed.items()):
        name = channel.encode()
        content.update(_LANE.pack(target, first, len(values), len(name)))
        content.update(name)
        content.update(pack_messages(values))
    return content.digest()
