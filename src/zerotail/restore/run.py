"""A restore of one partition, on this machine: complete the log, put it in order, prove it.

    1. the journal was read, and hangs together; a few looks into the log gave the plan (`seen.py`)
    2. records that the log lacks are appended from the database, in journal order
    3. the log is read in order; every segment must come to its recorded chain
    4. where a topic was named, the records are written there, in order and each once

Run again after it was stopped anywhere, it finds by 1 what is done already. It changes topics only, never the
database, and sends nothing outside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from zerotail.core.identity import Offset, Position, TopicName
from zerotail.core.order import BEYOND
from zerotail.core.record import HEADER_NAME
from zerotail.core.restoration import Restored, Statistics, skip, unbounded
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.core.restoration.proof import VALUE_NAME, Proof
from zerotail.errors import Broken, Refused
from zerotail.kafka.log import admin_client, ensure_topic
from zerotail.kafka.ordered_writer import OrderedWriter
from zerotail.restore.observe import TopicState, observe_topic
from zerotail.restore.peak import PeakMemory
from zerotail.restore.plan import require_usable
from zerotail.restore.reading import InOrder, open_in_order
from zerotail.restore.refill import first_missing, refill
from zerotail.restore.report import Outcome, PartitionReport
from zerotail.restore.seen import Seen

Consume = Callable[[pa.RecordBatch], None]
_IN_PLACE = (RestoreStrategy.ORDERED_REFILL, RestoreStrategy.FOLLOWER)


@dataclass(frozen=True, slots=True)
class Done:
    """What carrying out a strategy came to."""

    records: int
    statistics: Statistics | None = None
    proof: Proof | None = None
    written: int = 0
    live_offset: Offset | None = None


def run_restore(seen: Seen, *, check_values: bool = True, consume: Consume | None = None) -> PartitionReport:
    """Carry out a plan. `consume` gets every batch in order; what it gets is proven."""
    require_usable(seen.plan)
    memory, began = PeakMemory(), time.perf_counter()
    match seen.plan.chosen:
        case _ if not seen.plan.journaled:
            done = Done(0)
        case RestoreStrategy.SKIP:
            done = _pass_over(seen)
        case RestoreStrategy.FOLLOWER:
            done = Done(len(seen.recorded.journal.order), written=_complete(seen))
        case RestoreStrategy.ORDERED_REFILL:
            done = _refill_in_order(seen, consume)
        case RestoreStrategy.MIRROR_TAIL:
            written = _complete(seen)
            done = _read(open_in_order(seen, *_tail_start(seen), check_values=check_values), written, consume)
        case RestoreStrategy.UNBOUNDED | RestoreStrategy.BOUNDED:
            done = _restore_at_consumer(seen, check_values, consume)
        case RestoreStrategy.SORT | RestoreStrategy.AUTO:
            raise Refused(f"{seen.plan.chosen} is not carried out on this machine", code="ZT484")
    outcome = Outcome(
        seconds=time.perf_counter() - began,
        memory_bytes=memory.grown_bytes,
        reads=_reads(seen, done),
        writes=done.written,
        statistics=done.statistics,
    )
    return PartitionReport(
        plan=seen.plan,
        strategy=seen.plan.chosen,
        outcome=outcome,
        records=done.records,
        segments=done.proof.segments if done.proof else 0,
        chain=done.proof.chain.hex() if done.proof else "",
        state_digest="",
        written_to=seen.wish.into or (seen.recorded.topic if seen.plan.chosen in _IN_PLACE else ""),
        live_offset=done.live_offset,
    )


def _pass_over(seen: Seen) -> Done:
    """Idea one: pass over what is journaled; say where the first record lies that is not."""
    log = seen.recorded.log(seen.place)
    restored = skip(seen.recorded.journal.order.vector_after, log.open(None) if seen.state.exists else ())
    live: Offset | None = None
    for batch in restored:
        if live is None:
            live = Offset(batch.column("offset")[0].as_py())
    if live is None and seen.state.exists:
        live = log.bounds[1]
    return Done(restored.statistics.skipped, restored.statistics, live_offset=live)


def _restore_at_consumer(seen: Seen, check_values: bool, consume: Consume | None) -> Done:
    """Idea two, plan two: the log is completed where it must be, read in order, and written where that was asked."""
    written = _complete(seen) if seen.state.missing else 0
    into = seen.wish.into
    if into is None:
        return _read(open_in_order(seen, check_values=check_values), written, consume)
    _ensure(seen, into)
    installation = seen.recorded.installation.outside
    with closing(OrderedWriter(seen.place.cluster, into, seen.place.partition, installation)) as writer:
        state = observe_topic(seen.recorded.log_to_look_at(seen.place, into), seen.recorded.journal.order)
        _require_prefix(seen, into, state)
        records = open_in_order(seen, state.complete_to, check_values=check_values)

        def write(batch: pa.RecordBatch) -> None:
            writer.write(batch.column(VALUE_NAME).to_pylist(), batch.column(HEADER_NAME).to_pylist())
            if writer.is_full:
                writer.commit()
            if consume is not None:
                consume(batch)

        _read(records, 0, write)
        writer.commit()
    written += writer.written
    return Done(records.statistics.total, records.statistics, records.proof, written, records.live_offset)


def _read(records: InOrder, written: int, consume: Consume | None) -> Done:
    for batch in records:
        if consume is not None:
            consume(batch)
    return Done(records.statistics.total, records.statistics, records.proof, written, records.live_offset)


def _refill_in_order(seen: Seen, consume: Consume | None) -> Done:
    """Idea two, plan one: write in order what is not there yet, and read all of it back: in order, each record once."""
    topic = seen.wish.into or seen.recorded.topic
    _ensure(seen, topic)
    written = refill(seen.place, seen.recorded, topic, partial(_require_prefix, seen, topic))
    order = seen.recorded.journal.order
    batches = seen.recorded.log_named(seen.place, topic).open(None)
    restored = unbounded(order, batches)
    done = _read(InOrder(restored, Proof(seen.recorded.journal)), written, consume)
    # A restoration ends with the journal's last record; what is repeated may lie behind it.
    behind = sum(int((order.positions(rest.producers, rest.serials) != BEYOND).sum()) for rest in batches)
    _require_in_order(topic, restored, behind)
    return done


def _require_in_order(topic: TopicName, restored: Restored, repeats_behind: int) -> None:
    found = restored.statistics
    repeats = found.repeats + repeats_behind
    if found.cache_hits or repeats or found.gaps:
        raise Broken(
            f"topic {topic} is not in order: {found.cache_hits} records came early, {repeats} are repeats, "
            f"{found.gaps} stand behind a gap",
            code="ZT645",
            tries=["zerotail restore run … --into ANOTHER"],
        )


def _require_prefix(seen: Seen, topic: TopicName, state: TopicState) -> None:
    """`Refused` unless a topic that is to be written in order is empty, or what an earlier run wrote."""
    if not state.ordered:
        raise Refused(
            f"partition {seen.place.partition} of topic {topic} holds other records, or these in another order",
            code="ZT485",
            why="A topic that is written in order begins with the journal's first record.",
            tries=["--into with the name of a topic that is empty, or of one that an earlier run began"],
        )


def _complete(seen: Seen) -> int:
    """Append to the log what it lacks of the journal."""
    _ensure(seen, seen.recorded.topic)
    return refill(seen.place, seen.recorded, seen.recorded.topic)


def _ensure(seen: Seen, topic: TopicName) -> None:
    ensure_topic(admin_client(seen.place.cluster), topic, seen.place.shape)


def _tail_start(seen: Seen) -> tuple[Position, Offset]:
    """The first missing position, and an offset before which nothing of its segment, or behind it, lies.

    The log is looked at backwards in growing steps until everything at a place stands before that segment. Should a
    record lie still further back, the restoration says that it is missing.
    """
    journal = seen.recorded.journal
    missing = first_missing(journal.order, seen.state.last)
    start = journal.segment_at(missing).first_position
    log = seen.recorded.log_to_look_at(seen.place)
    first, behind = log.bounds
    window, offset = 4096, behind
    while offset > first:
        offset = Offset(max(first, behind - window))
        found = next(log.look_at([offset], 512), None)
        if found and (journal.order.positions(found.producers, found.serials) < start).all():  # empty if all foreign
            break
        window *= 4
    return start, offset


def _reads(seen: Seen, done: Done) -> float:
    if done.statistics is None:
        return 0.0
    appended = done.written if seen.wish.into is None else seen.state.missing
    return done.statistics.records_read / max(1, seen.state.records + appended)
