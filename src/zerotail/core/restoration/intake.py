"""Taking a batch into a merge: first a plan, which shows what it will hold, then the act."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from zerotail.core.identity import Offset, ProducerNumber
from zerotail.core.merge import Merge
from zerotail.core.restoration.arrivals import Arrivals, Foresight, foresee, sort_arrivals
from zerotail.core.restoration.batch import Batch
from zerotail.core.restoration.statistics import Tally

_WORTH_PASSING = 256
"""Fewer rows than this are not worth a batch of their own, unless they are all there is."""


@dataclass(frozen=True, slots=True, eq=False)
class Intake:
    """The plan: the news of a batch as pieces by producer, and what they will set free."""

    batch: Batch
    arrivals: Arrivals
    foresight: Foresight
    pieces: dict[ProducerNumber, pa.RecordBatch]
    cache_bytes: int
    """What the cache will hold at the most, before anything leaves it."""


def plan_intake(merge: Merge, batch: Batch, aside: Collection[ProducerNumber] = ()) -> Intake:
    """What taking in this batch means; the producers aside are read elsewhere."""
    arrivals = sort_arrivals(batch, merge, aside)
    pieces = {producer: batch.rows(rows) for producer, rows in arrivals.rows.items()}
    held = sum(merge.held_bytes(producer) for producer in merge.order.producers if producer not in aside)
    return Intake(
        batch=batch,
        arrivals=arrivals,
        foresight=foresee(merge, arrivals.rows, aside),
        pieces=pieces,
        cache_bytes=held + sum(piece.nbytes for piece in pieces.values()),
    )


def take_in(merge: Merge, intake: Intake, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Carry out a plan; what it sets free leaves."""
    batch, arrivals, foresight = intake.batch, intake.arrivals, intake.foresight
    for producer, piece in intake.pieces.items():
        merge.put(producer, piece, Offset(int(batch.offsets[arrivals.rows[producer][0]])))
    tally.reach(foresight.peak_cache_messages, intake.cache_bytes)
    tally.count(
        first_hits=foresight.first_hits,
        cache_hits=foresight.cache_hits,
        repeats=arrivals.repeats,
        gaps=arrivals.gaps,
        beyond=len(arrivals.beyond),
    )
    if len(arrivals.beyond):
        tally.leave(int(batch.offsets[arrivals.beyond[0]]))
    tally.read_to(int(batch.offsets[-1]) + 1)
    yield from merge.ready()


def worth_passing(rows: int, batch: Batch) -> bool:
    """Whether to let so many rows pass that are just the next to leave, rather than take the batch in."""
    return rows >= min(_WORTH_PASSING, len(batch))


def pass_in_order(
    merge: Merge, batch: Batch, tally: Tally, aside: Collection[ProducerNumber] = ()
) -> Iterator[pa.RecordBatch]:
    """Let all rows of a batch pass as they are, being just the next to leave; and what they set free."""
    merge.pass_by(len(batch))
    tally.count(first_hits=len(batch))
    tally.read_to(int(batch.offsets[-1]) + 1)
    yield batch.payload
    yield from release(merge, tally, aside)


def release(merge: Merge, tally: Tally, aside: Collection[ProducerNumber] = ()) -> Iterator[pa.RecordBatch]:
    """Let leave, and count, what is ready."""
    foresight = foresee(merge, {}, aside)
    tally.count(first_hits=foresight.first_hits, cache_hits=foresight.cache_hits)
    yield from merge.ready()
