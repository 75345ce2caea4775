"""How records of several producers lie in a partition: as the stage took them, and as a refill left them.

`like-notes`  each producer writes batches of 10,000 whenever it comes to it; the refill does so again
`fine`        runs of about 10 records, both times
`skewed`      the refill's first producer writes three times as fast as each of the others
`one-first`   the refill's producers come entirely one after the other, the last one first
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerotail.core.order import Numbers, Runs

KINDS = ("like-notes", "fine", "skewed", "one-first")
BATCH = 10_000
_FINE_RUN = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Interleaving:
    """The same records in two orders, as the producer of each; numbers from 1 on, serials dense."""

    journal: Numbers
    log: Numbers


def interleave(kind: str, records: int, producers: int, seed: int) -> Interleaving:
    """Both orders, repeatable from the seed."""
    rng = np.random.default_rng(seed)
    counts = np.full(producers, records // producers)
    counts[: records % producers] += 1
    if kind == "like-notes":
        return Interleaving(_batches(rng, counts, BATCH), _batches(rng, counts, BATCH))
    if kind == "fine":
        return Interleaving(_runs(rng, counts, _FINE_RUN), _runs(rng, counts, _FINE_RUN))
    if kind == "skewed":
        weights = np.ones(producers)
        weights[0] = 3.0
        return Interleaving(_runs(rng, counts, _FINE_RUN), _runs(rng, counts, _FINE_RUN, weights))
    if kind == "one-first":
        each = np.arange(producers, 0, -1)
        return Interleaving(_runs(rng, counts, _FINE_RUN), np.repeat(each, counts[::-1]))
    raise ValueError(f"there is no interleaving {kind}")


def serials_of(each: Numbers) -> Numbers:
    """The serial of each record, when each producer's are 1, 2, 3, … in this order."""
    serials = np.empty(len(each), dtype=np.int64)
    for producer in np.unique(each):
        mine = np.flatnonzero(each == producer)
        serials[mine] = np.arange(1, len(mine) + 1)
    return serials


def _batches(rng: np.random.Generator, counts: Numbers, size: int) -> Numbers:
    """Every producer's batches, in any order."""
    owners: list[int] = []
    sizes: list[int] = []
    for producer, count in enumerate(counts.tolist(), 1):
        whole, rest = divmod(count, size)
        owners += [producer] * (whole + (rest > 0))
        sizes += [size] * whole + ([rest] if rest else [])
    order = rng.permutation(len(owners))
    return np.repeat(np.array(owners)[order], np.array(sizes)[order])


def _runs(rng: np.random.Generator, counts: Numbers, mean_run: float, weights: np.ndarray | None = None) -> Numbers:
    """Runs of geometric length of producers drawn by weight; who has written all of its records falls out."""
    shares = np.ones(len(counts)) if weights is None else weights
    left = counts.copy()
    parts: list[Numbers] = []
    while left.sum():
        alive = np.flatnonzero(left)
        odds = shares[alive] / shares[alive].sum()
        draws = int(2 * left.sum() / mean_run) + 8
        owners = alive[rng.choice(len(alive), size=draws, p=odds)]
        lengths = rng.geometric(1 / mean_run, draws)
        each = np.repeat(owners, lengths)
        # Up to the first record that its producer does not have any more.
        ends = [np.flatnonzero(each == one)[left[one] :][:1] for one in alive]
        end = min((int(found[0]) for found in ends if len(found)), default=len(each))
        each = each[:end]
        left -= np.bincount(each, minlength=len(left))
        parts.append(each + 1)
    return Runs.of_records(np.concatenate(parts)).per_record()
