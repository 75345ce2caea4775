"""What a business would send: payments on accounts of which a few are busy and most are not.

Payment number n is a function of the seed and n alone. So several writers can make their own share of one and the same
sequence, each without knowing of the others, and the same seed gives the same payments at any rate.

1. An account is always in the same partition of a topic: the one that `zerotail.Emission` would choose for it as a key.
2. How often accounts appear follows Zipf's law: the second half as often as the first, the tenth a tenth as often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
_Noise = npt.NDArray[np.uint64]

_MOST_CENTS = 10_000
_PAID_IN_OF_TEN = 6
"""More is paid in than out, or soon everything would be refused; on a quiet account some still is."""


class Drawn(NamedTuple):
    """Consecutive payments, by columns."""

    number: Numbers
    source: Numbers
    account: Numbers
    amount: Numbers


@dataclass(frozen=True, slots=True)
class Payments:
    """An endless sequence of payments, from so many sources on so many accounts."""

    seed: int
    sources: int
    accounts: int
    busyness: npt.NDArray[np.float64]
    """How likely an account is that or one before it."""

    @classmethod
    def of(cls, seed: int, sources: int, accounts: int) -> Payments:
        """The sequence of this seed."""
        weights = np.cumsum(1.0 / np.arange(1, accounts + 1))
        return cls(seed, sources, accounts, weights / weights[-1])

    def draw(self, first: int, following: int) -> Drawn:
        """The payments from number `first` up to, not including, number `following`."""
        number = np.arange(first, following, dtype=np.int64)
        source = (self._noise(number, 1) % np.uint64(self.sources)).astype(np.int64)
        share = (self._noise(number, 2) >> np.uint64(11)).astype(np.float64) / 2**53
        account = np.searchsorted(self.busyness, share, side="right").clip(max=self.accounts - 1)
        size = self._noise(number, 3)
        cents = (size % np.uint64(_MOST_CENTS)).astype(np.int64) + 1
        paid_in = (size >> np.uint64(32)) % np.uint64(10) < np.uint64(_PAID_IN_OF_TEN)
        return Drawn(number, source, account, np.where(paid_in, cents, -cents))

    def _noise(self, number: Numbers, column: int) -> _Noise:
        """64 even bits for each number: the finishing steps of SplitMix64 over a counter."""
        begin = (self.seed * 0x9E3779B97F4A7C15 + column * 0xD1B54A32D192ED03) % 2**64
        noise = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(begin)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            noise = (noise ^ (noise >> np.uint64(shift))) * np.uint64(factor)
        return noise ^ (noise >> np.uint64(31))


def account_name(account: int) -> str:
    """What an account is called."""
    return f"a{account:06d}"


def partition_of(account: str, partitions: int) -> int:
    """The partition in which everything of the account is."""
    return crc32(account.encode()) % partitions
