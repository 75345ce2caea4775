"""Where a consumer group goes on at the target: its positions, translated record by record.

The copies carry the offsets that they had at the source, and these only grow: the target's log is itself the map, and a
binary search in it finds the first copy that the group has not read. Nothing has to be stored for that, and nothing can
be out of step with the records.

A position is *exact* when the target's partition holds the records of this source alone. In an active-active mirror
the group has also read copies of what was written at the target: its position there is the lower one of what it has not
read of either side, so nothing is left out, and some records may come again. In a topic that several spokes share, no
single position is right for all of them, and none is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from zerotail.core.identity import Offset
from zerotail.core.provenance import Provenance

_SHORT = 2000
"""So few offsets are read one after the other."""


class Log(Protocol):
    """A partition of the target, readable from any offset on."""

    def bounds(self) -> tuple[Offset, Offset]:
        """Where it begins, and the offset behind its end."""
        ...

    def records(self, start: Offset) -> Iterator[tuple[Offset, Provenance | None]]:
        """Its records from an offset on."""
        ...


@dataclass(frozen=True, slots=True)
class Translated:
    """One position of a group, at the source and at the target."""

    topic: str
    target_topic: str
    partition: int
    source_position: int
    target_position: int
    exact: bool
    note: str = ""


Mine = Callable[[Provenance | None], Offset | None]
"""The offset at the source of a record that came from it; None for any other record."""


def find_first(log: Log, wanted: Offset, mine: Mine) -> tuple[Offset, Offset | None]:
    """The target's offset of the first copy at or behind `wanted`, and what offset that one had at the source.

    When there is none, the offset behind the end.
    """
    low, high = log.bounds()
    end, best = high, None
    while high - low > _SHORT:
        middle = Offset((low + high) // 2)
        found = _next_copy(log, middle, high, mine)
        if found is None:
            high = middle
        elif found[1] >= wanted:
            high, best = middle, found
        else:
            low = Offset(found[0] + 1)
    found = next((one for one in _copies(log, low, mine) if one[1] >= wanted), best)
    return found if found is not None else (end, None)


def _next_copy(log: Log, start: Offset, end: Offset, mine: Mine) -> tuple[Offset, Offset] | None:
    found = next(_copies(log, start, mine), None)
    return found if found is not None and found[0] < end else None


def _copies(log: Log, start: Offset, mine: Mine) -> Iterator[tuple[Offset, Offset]]:
    for offset, provenance in log.records(start):
        source_offset = mine(provenance)
        if source_offset is not None:
            yield offset, source_offset
