"""Which records of a batch a stage takes: the rule that makes repeats, gaps, orphans and strangers harmless.

Per producer only the serial behind the vector is taken. What is lower is a repeat; what is higher waits
behind a gap and will be asked for again. Records of another history (see `epoch.py`) are orphans, records
without our header are foreign. The order of the accepted records is the order of the batch.

1. Accepted serials of a producer are dense behind the vector (I2), whatever Kafka repeated, lost or
   reordered.
2. No orphan is accepted (I14).
3. A record of an epoch that this database does not know yet, newer than its own, means that the reader is
   outdated: nothing is taken from there on, and the caller reads the head again.

There are two ways to compute it, `admit_few` record by record and `admit_many` run by run with NumPy; a
property test holds them to the same answer. `admit` chooses by size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zerotail.core.identity import Epoch, ProducerNumber, Serial

FOREIGN = ProducerNumber(0)
"""Stands in the producer column for a record without our header."""

Limits = Mapping[Epoch, Mapping[ProducerNumber, Serial] | None]
Vector = Mapping[ProducerNumber, Serial]

_FEW = 512


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The headers of a batch in offset order, by column."""

    producers: Sequence[ProducerNumber]
    serials: Sequence[Serial]
    epochs: Sequence[Epoch]


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of a batch."""

    accepted: Sequence[int]
    """Indexes of the accepted records in the batch, ascending."""
    vector: dict[ProducerNumber, Serial]
    repeats: int
    orphans: int
    foreign: int
    held: int
    """Records behind a gap."""
    gaps: dict[ProducerNumber, Serial]
    """Producers that have to send again, and from which serial on."""
    outdated: bool
    """The batch holds a record of an epoch newer than any this database knows."""


def admit(arrivals: Arrivals, vector: Vector, limits: Limits) -> Admission:
    """Decide about every record of a batch."""
    if len(arrivals.serials) <= _FEW:
        return admit_few(arrivals, vector, limits)
    return admit_many(arrivals, vector, limits)


def admit_few(arrivals: Arrivals, vector: Vector, limits: Limits) -> Admission:
    """The rule, record by record: best for small batches."""
    reached = dict(vector)
    newest = max(limits)
    accepted: list[int] = []
    repeats = orphans = foreign = held = 0
    highest: dict[ProducerNumber, Serial] = {}
    outdated = False
    columns = zip(arrivals.producers, arrivals.serials, arrivals.epochs, strict=True)
    for index, (producer, serial, epoch) in enumerate(columns):
        last = reached.get(producer)
        if last is None:
            foreign += 1
            continue
        if epoch > newest:
            outdated = True
            break
        if epoch != newest:
            limit = limits.get(epoch)
            if limit is None or serial > limit.get(producer, 0):
                orphans += 1
                continue
        if serial == last + 1:
            reached[producer] = serial
            accepted.append(index)
        elif serial <= last:
            repeats += 1
        else:
            held += 1
            highest[producer] = max(serial, highest.get(producer, Serial(0)))
    gaps = {
        producer: Serial(reached[producer] + 1) for producer, serial in highest.items() if serial > reached[producer]
    }
    return Admission(accepted, reached, repeats, orphans, foreign, held, gaps, outdated)


def admit_many(arrivals: Arrivals, vector: Vector, limits: Limits) -> Admission:
    """The same rule over runs of consecutive serials: best for large batches, which have few of them."""
    producers = np.asarray(arrivals.producers, dtype=np.int64)
    serials = np.asarray(arrivals.serials, dtype=np.int64)
    epochs = np.asarray(arrivals.epochs, dtype=np.int64)
    known = np.isin(producers, np.fromiter(vector, dtype=np.int64, count=len(vector)))
    newer = np.flatnonzero(known & (epochs > max(limits)))
    outdated = bool(len(newer))
    if outdated:
        end = int(newer[0])
        producers, serials, epochs, known = producers[:end], serials[:end], epochs[:end], known[:end]
    foreign = len(known) - int(np.count_nonzero(known))
    live = known & within_cuts(producers, serials, epochs, limits)
    orphans = int(np.count_nonzero(known)) - int(np.count_nonzero(live))

    reached = dict(vector)
    ranges: list[np.ndarray] = []
    gaps: dict[ProducerNumber, Serial] = {}
    first_held: dict[ProducerNumber, int] = {}
    repeats = held = 0
    for producer in vector:
        places = np.flatnonzero(live & (producers == producer))
        if not len(places):
            continue
        own = serials[places]
        starts = np.concatenate(([0], np.flatnonzero(np.diff(own) != 1) + 1))
        highest = 0
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(own)], strict=True):
            first, last = int(own[start]), int(own[end - 1])
            wanted = reached[producer] + 1
            if first > wanted:
                held += end - start
                first_held.setdefault(producer, int(places[start]))
                highest = max(highest, last)
                continue
            known_already = min(end - start, wanted - first)
            repeats += known_already
            if last >= wanted:
                ranges.append(places[start + known_already : end])
                reached[producer] = Serial(last)
        if highest > reached[producer]:
            gaps[producer] = Serial(reached[producer] + 1)
    ordered = {producer: gaps[producer] for producer in sorted(gaps, key=first_held.__getitem__)}
    accepted = np.sort(np.concatenate(ranges)) if ranges else np.empty(0, dtype=np.int64)
    return Admission(accepted.tolist(), reached, repeats, orphans, foreign, held, ordered, outdated)


def within_cuts(producers: np.ndarray, serials: np.ndarray, epochs: np.ndarray, limits: Limits) -> np.ndarray:
    """Which records belong to the lineage: a batch has few epochs and few producers, so go by pairs of
    them.
    """
    newest = max(limits)
    within: np.ndarray = epochs == newest
    for epoch in np.unique(epochs[~within]).tolist():
        for producer, serial in (limits.get(epoch) or {}).items():
            within |= (epochs == epoch) & (producers == producer) & (serials <= serial)
    return within
