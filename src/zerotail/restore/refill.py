"""The ordered refill: one merging writer over the database's own order, and a proof before each record is written.

Each producer's rows are read by the block, in serial order, by a thread that stays one block ahead; the merge takes
runs, not single messages; headers and hashes are computed by column. A record is queued only when the segment it
stands in came to its recorded chain, so a damaged journal is found before anything of the damage is written.

1. Records leave in journal order; of each producer only those behind what the log has.
2. Nothing is written of a segment that is not proven.
3. Interrupted anywhere and begun again, it goes on behind the last committed record: no record is written twice. What
   the log has is looked up when the writer is open: whatever an earlier one had begun is then in the log, or never
   will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zerotail.core.identity import Position, ProducerNumber, Serial, TopicName
from zerotail.core.order import Order
from zerotail.core.record import HEADER_BYTES, digests_of, encode_column
from zerotail.core.refill import merge_sources
from zerotail.core.restoration.journal import rest_of
from zerotail.core.restoration.proof import Proof
from zerotail.kafka.ordered_writer import OrderedWriter
from zerotail.postgres.reading import Source
from zerotail.postgres.restoring import ROWS_PER_BLOCK, read_blocks
from zerotail.restore.observe import TopicState, observe_topic
from zerotail.restore.place import Place, Recorded

Last = Mapping[ProducerNumber, Serial]
_ROWS_AT_HAND = 80_000
"""Of all producers together; each has a second block on its way."""
_FEWEST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive records of the journal, ready to be written."""

    first_position: Position
    producers: np.ndarray
    serials: np.ndarray
    values: list[bytes]
    headers: list[bytes]


def refill(
    place: Place, recorded: Recorded, topic: TopicName, accept: Callable[[TopicState], None] = lambda _state: None
) -> int:
    """Append what the journal has and the topic lacks, in order; how many records were written.

    `accept` may raise at what the topic holds, before anything is written.
    """
    order = recorded.journal.order
    with closing(OrderedWriter(place.cluster, topic, place.partition, recorded.installation.outside)) as writer:
        state = observe_topic(recorded.log_to_look_at(place, topic), order)
        accept(state)
        last = state.last
        if first_missing(order, last) == order.next_position:
            return 0
        for records in proven_records(place, recorded, last):
            writer.write(*_behind(records, last))
            if writer.is_full:
                writer.commit()
        writer.commit()
        return writer.written


def first_missing(order: Order, last: Last) -> Position:
    """The first position whose record is behind what the log has of its producer; the order's end if none is."""
    places = [
        order.find_position(producer, max(last.get(producer, 0), order.vector_before[producer]) + 1)
        for producer in order.producers
    ]
    return min((place for place in places if place is not None), default=order.next_position)


def proven_records(place: Place, recorded: Recorded, last: Last) -> Iterator[Records]:
    """The records from the segment of the first missing one on, each handed out when its segment is proven."""
    journal = recorded.journal
    segment = journal.segment_at(first_missing(journal.order, last))
    proof = Proof(journal, segment.segment)
    held: list[Records] = []
    for records, digests in _merged(place, recorded, rest_of(journal.order, segment.first_position)):
        held.append(records)
        proof.follow(digests)
        proven = journal.segments[proof.segments - 1].next_position if proof.segments else Position(0)
        while held and held[0].first_position < proven:
            ready, rest = _split(held.pop(0), proven)
            yield ready
            if rest is not None:
                held.insert(0, rest)
    proof.require_complete()


def _merged(place: Place, recorded: Recorded, order: Order) -> Iterator[tuple[Records, np.ndarray]]:
    """The records of an order, from the database, with their digests."""
    position = order.first_position
    rows_per_block = max(_FEWEST_ROWS, min(ROWS_PER_BLOCK, _ROWS_AT_HAND // max(1, len(order.producers))))
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="rows") as pool:
        sources = {
            producer: _ahead(
                pool,
                read_blocks(
                    place.dsn,
                    recorded.sources.get(producer, Source()),
                    producer,
                    place.partition,
                    Serial(before + 1),
                    order.vector_after[producer],
                    rows_per_block,
                ),
            )
            for producer, before in order.vector_before.items()
        }
        for batch in merge_sources(order, sources):
            records, digests = _records(recorded, order, position, batch)
            position = Position(position + batch.num_rows)
            yield records, digests


def _records(recorded: Recorded, order: Order, position: Position, batch: pa.RecordBatch) -> tuple[Records, np.ndarray]:
    producers, serials = order.records_between(position, position + batch.num_rows)
    values = batch.column("value").to_pylist()
    digests = np.frombuffer(digests_of(values), dtype="<u8")
    epochs = recorded.journal.epochs_between(position, position + batch.num_rows)
    packed = encode_column(epochs, producers, serials, digests, recorded.installation.mark).buffers()[2]
    headers = np.frombuffer(packed, dtype=f"V{HEADER_BYTES}").tolist()
    return Records(position, producers, serials, values, headers), digests


def _split(records: Records, position: Position) -> tuple[Records, Records | None]:
    """What stands before a position, and the rest."""
    count = position - records.first_position
    if count >= len(records.values):
        return records, None

    def part(first: int, end: int | None) -> Records:
        return Records(
            Position(records.first_position + first),
            records.producers[first:end],
            records.serials[first:end],
            records.values[first:end],
            records.headers[first:end],
        )

    return part(0, count), part(count, None)


def _behind(records: Records, last: Last) -> tuple[list[bytes], list[bytes]]:
    """Of these records those that the log lacks."""
    known = np.zeros(len(records.values), dtype=np.bool_)
    for producer, serial in last.items():
        known |= (records.producers == producer) & (records.serials <= serial)
    if not known.any():
        return records.values, records.headers
    lacking = np.flatnonzero(~known).tolist()
    return [records.values[index] for index in lacking], [records.headers[index] for index in lacking]


def _ahead(pool: ThreadPoolExecutor, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same blocks, the next one read while this one is used."""
    following: Future[pa.RecordBatch | None] = pool.submit(next, blocks, None)
    while (block := following.result()) is not None:
        following = pool.submit(next, blocks, None)
        yield block
