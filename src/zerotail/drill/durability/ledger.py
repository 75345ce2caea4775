"""Which numbers were acknowledged, and which are in the log in the end. Pure: the counting that the verdict rests on.

Numbers are dense from 0 on. A number that was acknowledged and is not in the log is **lost**; one that is there more
than once is **repeated**, as often as it is there too much. What was not acknowledged may be there or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Count:
    """What one ledger shows."""

    written: int
    acknowledged: int
    found: int
    """Numbers that are in the log, each counted once."""
    lost: int
    repeated: int
    lost_by_round: tuple[int, ...]


class Ledger:
    """The numbers of one cell."""

    def __init__(self) -> None:
        self.next_number = 0
        self._acknowledged = bytearray()
        self._rounds: list[int] = []
        self.acknowledged_in_round = 0

    def take(self, count: int) -> range:
        """New numbers to be written."""
        numbers = range(self.next_number, self.next_number + count)
        self._acknowledged.extend(bytes(count))
        self.next_number += count
        return numbers

    def acknowledge(self, number: int) -> None:
        """The producer was told that this number is delivered."""
        self._acknowledged[number] = 1
        self.acknowledged_in_round += 1

    def begin_round(self) -> None:
        """The numbers from here on belong to the next round."""
        self._rounds.append(self.next_number)
        self.acknowledged_in_round = 0

    def count(self, found: Iterable[int]) -> Count:
        """Compare with what the log holds."""
        times = np.bincount(np.fromiter(found, dtype=np.int64), minlength=self.next_number)
        acknowledged = np.frombuffer(bytes(self._acknowledged), dtype=np.uint8).astype(bool)
        lost = acknowledged & (times[: self.next_number] == 0)
        return Count(
            written=self.next_number,
            acknowledged=int(acknowledged.sum()),
            found=int((times > 0).sum()),
            lost=int(lost.sum()),
            repeated=int((times - 1)[times > 1].sum()),
            lost_by_round=self._by_round(lost),
        )

    def _by_round(self, lost: NDArray[np.bool_]) -> tuple[int, ...]:
        places = [*self._rounds, self.next_number]
        return tuple(int(np.sum(lost[first:behind])) for first, behind in pairwise(places))
