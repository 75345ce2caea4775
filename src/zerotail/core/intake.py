"""What an instruction may have: limits of everything on its way, known before anybody is told that it is stored.

A record has to pass the Kafka client, which takes 1,000,000 bytes with headers and all (`message.max.bytes`), and a
topic, whose batches have 1,048,588 bytes (`max.message.bytes`); both are the defaults. What is left over is for our
header, for that of a mirror, and for a transform that makes a value a little longer.

The tables have the same limits: `0010_intake.sql`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Self

from zerotail.core.identity import PartitionNumber, Serial

MOST_VALUE_BYTES = 900_000
MOST_ID_BYTES = 1_000
"""What fits into an index of the database."""


class AcceptedSerial(int):
    """The serial of an accepted instruction: a number like any other, which says how durable the instruction is."""

    durability: Literal["gated", "exposed"]
    """`gated`: both sites have it. `exposed`: there is no other site now, and it is stored at one only."""

    def __new__(cls, serial: Serial, durability: Literal["gated", "exposed"]) -> Self:
        number = super().__new__(cls, serial)
        number.durability = durability
        return number


def too_large(size: int) -> str:
    """Why a value of this size is not taken; empty when it fits."""
    if size <= MOST_VALUE_BYTES:
        return ""
    return f"a value has {MOST_VALUE_BYTES} bytes at most, and this one has {size}"


def find_unfit(size: int, id_size: int, partition: PartitionNumber, partitions: Collection[PartitionNumber]) -> str:
    """Why an instruction is not taken, by the sizes of its value and identifier, and the partitions that its stage has;
    empty when it can be processed.
    """
    if unfit := too_large(size) or name_too_long(id_size):
        return unfit
    if partition not in partitions:
        return f"there are {len(partitions)} partitions, counted from 0, and {partition} is none of them"
    return ""


def name_too_long(size: int) -> str:
    """Why an identifier of this size is not taken; empty when it fits."""
    return f"an identifier has {MOST_ID_BYTES} bytes at most, and this one has {size}" if size > MOST_ID_BYTES else ""
