"""Places: how far a group has come in each partition, kept in the store that holds the results.

A result and the place behind it are stored in one transaction, so a record has its result once, however often it is
read. Kafka's own offsets have no part in that. Whoever wants to work on a partition claims its place first:

1. A claim raises the generation of the place and answers where to go on. The newest claim holds. A place says of which
   log it is; whoever reads another one, of another cluster or of a topic made anew, gets no claim (E24).
2. A transaction moves a place only if generation and offset are what its claim said; else it is *fenced*, and nothing
   of it stays. So a member that was frozen, or took too long, and does not know that its partition has gone to
   somebody else, stores nothing.
3. After a commit whose end nobody heard, the place is claimed again: what that answers is the truth, and what is still
   under way somewhere is fenced.

`Places` is all that another store has to offer; PostgreSQL's are in `zerotail.postgres.places`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


@dataclass(frozen=True, slots=True)
class Place:
    """A claimed place: the offset to go on with, and the generation of the claim."""

    partition: Partition
    next_offset: int | None
    """None before the first record."""
    generation: int


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The place was kept in another log, whose offsets mean nothing here; it was not claimed."""

    log: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Result and place are stored."""

    place: Place


@dataclass(frozen=True, slots=True)
class Fenced:
    """Somebody else has claimed the place; nothing was stored."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The store did not answer, or not to the end: claim again to find out."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The work raised; nothing was stored."""

    error: Exception


class Places(Protocol[T_co]):
    """A store of results and places; `T_co` is what its transactions look like to the work."""

    def claim(self, group: str, partition: Partition, log: str) -> Place | Elsewhere | Lost:
        """Become the one who works on a partition for a group, in this log."""

    def transact(self, group: str, place: Place, work: Callable[[T_co], int]) -> Moved | Fenced | Lost | Failed:
        """Do the work and move the place to the offset that it answers with, both or neither."""

    def close(self) -> None:
        """Give the connections back."""
