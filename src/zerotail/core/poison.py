"""Poison: a record that stops its partition, and what an operator decides about it.

A record that cannot be read, or at which the handler fails, is never passed over by itself. Everything in front of it
is stored, the partition stops, and an operator decides: try it again, skip it, or apply another value in its place.
The decision becomes part of the segment that takes the record, under the chain's hash, so a replay at the other site
decides alike.

1. A decision is bound to producer, serial **and** digest (I22): about a record with other bytes nothing was decided.
2. A skipped record still has its position in the order; only the handler does not see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from zerotail.core.identity import Position, ProducerNumber, Serial


class Remedy(Enum):
    """What becomes of the record."""

    SKIP = "skip"
    REPLACE = "replace"

    @property
    def number(self) -> int:
        """As the chain counts it."""
        return 1 if self is Remedy.SKIP else 2


@dataclass(frozen=True, slots=True)
class Decision:
    """An operator's decision about one record."""

    remedy: Remedy
    digest: bytes
    """Of the record that it is about."""
    value: bytes = b""
    """What is applied instead, when it is replaced."""


@dataclass(frozen=True, slots=True)
class Poison:
    """The record at which a partition stopped."""

    producer: ProducerNumber
    serial: Serial
    position: Position
    digest: bytes
    reason: str
    log: str = ""
    """Of a record that is no instruction: in which log it lies. Its producer is 0, its serial the offset plus 1."""


RecordName = tuple[ProducerNumber, Serial]
Decided = tuple[int, Decision]
"""A place in a segment, counted from 0, and what was decided about the record there."""
