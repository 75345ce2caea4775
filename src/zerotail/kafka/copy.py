"""Copy one partition from a cluster to another, each record once, whatever is killed meanwhile.

1. `open`     a transactional producer under the partition's own id: whoever wrote before can write no more, and what it
              had begun is ended one way or the other. Then the place and the target's end are read, and
              `core.copying.plan_start` says where to go on.
2. `claim`    the place is written under the name of this run: an older run learns that it is not wanted any more.
3. `copy`     records are read with their key, value, headers and timestamp and sent on to the same partition, each with
              one header more: where it comes from. One transaction holds the records and the place behind them.

When anything goes wrong the clients are thrown away; the next call begins at 1. A fenced copier looks at the place: a
newer run there ends it, its own run there means that another worker of the same run had the partition meanwhile.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from zerotail.core.copying import Go, Place, SourceLog, Stop, TargetEnd, plan_start, read_place
from zerotail.core.identity import Offset
from zerotail.core.provenance import HEADER_NAME, Origin, Provenance, decode, stamper
from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable
from zerotail.kafka.carry import Carried, LostPlaceError, carry
from zerotail.kafka.catalogue import id_bytes, id_text
from zerotail.kafka.copy_order import Order, Outcome
from zerotail.kafka.measures import INTERVAL, NetworkShare, ReaderMeasures, WriterMeasures
from zerotail.kafka.reading import READING, peeking, read_committed
from zerotail.kafka.topic import End, Headers, TopicReader
from zerotail.kafka.topic import Place as TopicPlace

WRITING: Final = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 500_000,
    "transaction.timeout.ms": 60_000,
    "log_level": 0,
}
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 5.0
_COORDINATOR_SECONDS = 15.0
_POLL_SECONDS = 0.05
_TRANSACTION_SECONDS = 0.5
"""The longest that a transaction takes in records: readers of the target see none of them before its end."""
_COMMIT_SECONDS = 45.0
"""Less than the broker gives a transaction."""
_ROOM_SECONDS = 5.0
_LEAST_ROOM, _MOST_ROOM = 1_000_000, 64_000_000
"""Bytes. A transaction holds what the target took in some seconds by its last speed: a slow one could not end it."""
_AT_ONCE = 2_000
"""Records: more of them at once leave the processor's cache before they are sent on."""
_USUAL_BYTES = 1_000
_END_WITH_PLACE = 4096
"""How far back the end is searched when a place is there, too: in a topic of several origins ours may be far back."""
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError._FATAL)
"""A producer that was fenced says so once; whatever it is asked afterwards fails as fatal."""
_quiet = logging.Logger("librdkafka", logging.CRITICAL + 1)
"""A fence is logged as fatal at every level; what matters of it is in the outcome."""
_ERRORS = (KafkaException, SystemError)  # a fatal error behind a callback comes out as a SystemError


class PartitionCopier:
    """Copies one partition; it is kept from pass to pass with its clients."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._origin = Origin(order.flow.source, order.topic, id_bytes(order.topic_id), order.partition)
        self._stamp = stamper(self._origin)
        self._reader: Consumer | None = None
        self._writer: Producer | None = None
        self._places: Consumer | None = None
        self._next = Offset(0)
        self._last = Offset(0)
        self._room, self._usual = float(_LEAST_ROOM), _USUAL_BYTES
        self._note = ""
        self._begun = False
        self._read, self._written, self._network = ReaderMeasures(), WriterMeasures(), NetworkShare()

    def work(self, end: int, seconds: float) -> Outcome:
        """Copy until the source's `end` is reached, or for about so many seconds."""
        try:
            return self._work(end, seconds)
        except _ERRORS as error:
            self.close()
            if not _is_fence(error):
                return Outcome("waiting", _reason(error))
        except (LostPlaceError, Unavailable) as error:
            self.close()
            return Outcome("waiting", str(error))
        except Refused as error:  # a header that nobody can read: going on could copy in a circle
            self.close()
            return Outcome("stopped", error.message)
        # Somebody else has opened the partition: the place says whether that was a worker of this same run.
        try:
            return self._work(end, seconds)
        except (*_ERRORS, LostPlaceError, Unavailable) as error:
            self.close()
            return Outcome("waiting", _reason(error))

    def _work(self, end: int, seconds: float) -> Outcome:
        if self._writer is None:
            stopped = self._open()
            if stopped is not None:
                return stopped
        return self._copy(end, time.monotonic() + seconds)

    def close(self) -> None:
        """Throw the clients away with what they had queued."""
        if self._writer is not None:
            with suppress(*_ERRORS):
                self._writer.purge()
                self._writer.flush(0)
        for reader in (self._reader, self._places):
            if reader is not None:
                with suppress(*_ERRORS):
                    reader.close()
        self._reader = self._writer = self._places = None
        self._begun = False

    def _open(self) -> Outcome | None:
        """Take the partition over; an outcome when nothing may be copied."""
        order = self._order
        if newer := self._newer_run(self._peek_place()):
            return newer
        self._places = Consumer({**READING, **order.target.for_client(), "group.id": order.group})
        told = {**INTERVAL, "stats_cb": self._written.take}
        settings = {**WRITING, **order.target.for_client(), **told, "transactional.id": order.fence}
        writer = Producer(settings, logger=_quiet)
        writer.init_transactions(_ANSWER_SECONDS)
        place = self._read_place()
        if newer := self._newer_run(place):
            return newer
        end = self._read_end(place)
        told = {**INTERVAL, "stats_cb": self._read.take}
        self._reader = Consumer({**READING, **order.source.for_client(), **told})
        there = TopicPartition(order.topic, order.partition)
        low, high = self._reader.get_watermark_offsets(there, timeout=_LOOK_SECONDS)
        started = plan_start(place, end, SourceLog(order.topic_id, Offset(low), Offset(high)), order.accepted)
        if isinstance(started, Stop):
            self.close()
            return Outcome("stopped", started.sentence, kind=started.kind)
        self._begin(writer, started, is_claimed=place is not None and place.run == order.run and not started.note)
        return None

    def _begin(self, writer: Producer, started: Go, *, is_claimed: bool) -> None:
        order = self._order
        self._next, self._last, self._note = started.offset, started.last_copied, started.note
        if not is_claimed:
            writer.begin_transaction()
            self._commit(writer)
        assert self._reader is not None  # noqa: S101 - made by `_open`
        self._reader.assign([TopicPartition(order.topic, order.partition, self._next)])
        self._writer = writer

    def _copy(self, end: int, until: float) -> Outcome:
        assert self._writer is not None  # noqa: S101 - opened
        tally = _Tally()
        note, self._note = self._note, ""
        while not tally.at_end and time.monotonic() < until:
            carried = Carried(self._next, self._last)
            began = time.perf_counter()
            self._fill(self._writer, carried, tally, end, min(until, time.monotonic() + _TRANSACTION_SECONDS))
            if carried.next_offset > self._next:
                filled = time.perf_counter()
                self._next, self._last = carried.next_offset, carried.last_copied
                self._commit(self._writer)
                ended = time.perf_counter()
                self._room = _room(carried.bytes, ended - began)
                tally.add(carried, ended - filled)
        return Outcome(
            "copying",
            note,
            tally.copied,
            tally.left_out,
            tally.bytes,
            self._next,
            tally.transactions,
            tally.reading_seconds,
            tally.sending_seconds,
            metrics={**self._read.values, **self._written.values, **self._network.values()},
        )

    def _fill(self, writer: Producer, carried: Carried, tally: _Tally, end: int, until: float) -> None:
        """Read and queue what goes into one transaction. One that stays empty stays open: only we know of it."""
        assert self._reader is not None  # noqa: S101 - opened
        if not self._begun:
            writer.begin_transaction()
            self._begun = True
        while (wanted := self._wanted(carried)) > 0 and not tally.at_end and time.monotonic() < until:
            began = time.perf_counter()
            messages = self._reader.consume(wanted, _POLL_SECONDS)
            read = time.perf_counter()
            writer.poll(0)
            carry(self._order, self._stamp, writer, messages, carried)
            tally.at_end = (carried.at_end or not messages) and carried.next_offset >= end
            tally.reading_seconds += read - began
            tally.sending_seconds += time.perf_counter() - read

    def _wanted(self, carried: Carried) -> int:
        """How many records more go into a transaction, some at a time; none when it is full."""
        if carried.copied:
            self._usual = carried.bytes // carried.copied + 1
        fitting = int(self._room - carried.bytes) // self._usual
        return min(_AT_ONCE, self._order.most - carried.copied, fitting if carried.copied else max(1, fitting))

    def _commit(self, writer: Producer) -> None:
        """End a transaction with the place behind its records."""
        order = self._order
        assert self._places is not None  # noqa: S101 - opened
        place = Place(self._next, self._last, order.topic_id, order.run)
        there = TopicPartition(order.target_topic, order.partition, place.next_offset, place.metadata())
        writer.send_offsets_to_transaction([there], self._places.consumer_group_metadata(), _ANSWER_SECONDS)
        writer.commit_transaction(_COMMIT_SECONDS)
        self._begun = False

    def _peek_place(self) -> Place | None:
        """The place before the fence: whoever wrote last may have left a transaction open."""
        return self._place_seen_by(peeking(self._order.target, self._order.group))

    def _read_place(self) -> Place | None:
        """The place behind the fence."""
        assert self._places is not None  # noqa: S101 - opened
        return self._place_seen_by(self._places)

    def _place_seen_by(self, client: Consumer) -> Place | None:
        asked = TopicPartition(self._order.target_topic, self._order.partition)
        (found,) = read_committed(client, [asked], Deadline.after(_COORDINATOR_SECONDS))
        return read_place(found.offset, found.metadata or "") if found.offset >= 0 else None

    def _read_end(self, place: Place | None) -> TargetEnd:
        """The last copy in the target's partition; what this run has written itself it need not read again."""
        order = self._order
        if place is not None and place.run == order.run:
            return TargetEnd(place.last_copied, place.topic_id, False)
        reader = TopicReader(
            TopicPlace(order.target.for_client(), order.target_topic, order.partition, _ANSWER_SECONDS)
        )
        try:
            found = reader.find_last(self._own, most=None if place is None else _END_WITH_PLACE)
        finally:
            reader.close()
        if isinstance(found, Provenance):
            return TargetEnd(found.offset, id_text(found.origin.topic_id), True)
        if isinstance(found, End):
            return TargetEnd(None, None, found.is_whole)
        raise Unavailable(f"the end of {order.target_topic} at {order.flow.target} cannot be read.", code="ZT552")

    def _own(self, headers: Headers) -> Provenance | None:
        value = headers.get(HEADER_NAME)
        if value is None:
            return None
        found, mine = decode(value), self._origin
        same = (found.origin.cluster, found.origin.topic, found.origin.partition)
        return found if same == (mine.cluster, mine.topic, mine.partition) else None

    def _newer_run(self, place: Place | None) -> Outcome | None:
        if place is None or place.run <= self._order.run:
            return None
        self.close()
        newer = f"a newer start of {self._order.flow.name} is at work (generation {place.run.generation})"
        return Outcome("fenced", newer)


def _is_fence(error: Exception) -> bool:
    cause = error.args[0] if error.args else None
    return isinstance(cause, KafkaError) and cause.code() in _FENCED


def _reason(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return (cause.str() or cause.name()) if isinstance(cause, KafkaError) else str(error)


def _room(sent_bytes: int, seconds: float) -> float:
    """How much the next transaction holds: what the target would take in some seconds."""
    return max(_LEAST_ROOM, min(_MOST_ROOM, sent_bytes / seconds * _ROOM_SECONDS))


@dataclass(slots=True)
class _Tally:
    """What one pass has done so far."""

    copied: int = 0
    left_out: int = 0
    bytes: int = 0
    transactions: int = 0
    reading_seconds: float = 0.0
    sending_seconds: float = 0.0
    at_end: bool = False

    def add(self, carried: Carried, seconds: float) -> None:
        """Add a transaction whose end took so long."""
        self.copied += carried.copied
        self.left_out += carried.left_out
        self.bytes += carried.bytes
        self.transactions += 1
        self.sending_seconds += seconds
