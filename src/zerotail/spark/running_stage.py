"""A stage of an application while it runs: where it begins, when it holds back, why it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from threading import Event, Lock
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zerotail.config import Configuration
from zerotail.core.admission import FOREIGN
from zerotail.core.epoch import topic_at, works_at
from zerotail.core.head import Hint
from zerotail.core.identity import Offset, PartitionNumber, SiteName
from zerotail.core.installation import UNMARKED
from zerotail.errors import Unavailable, ZerotailError
from zerotail.flow.stage import Place, Stage, Taken, claim_place
from zerotail.kafka.log import admin_client, log_bounds, log_identity
from zerotail.ports import End, HeadRead, ReadHead
from zerotail.postgres.owed import owed_bytes
from zerotail.postgres.poison import forget_other_logs
from zerotail.postgres.transaction import Session
from zerotail.running.parts import StagePart
from zerotail.running.prepare import WAITING, NotActiveError, adapter_settings, prepare_or_wait
from zerotail.running.report import Say
from zerotail.spark import stage_query
from zerotail.spark.alone import Alone
from zerotail.spark.alone_worker import Job
from zerotail.spark.lag import last_offsets, records_between
from zerotail.spark.stage_query import (
    FROM_THE_BEGINNING,
    StageTask,
    read_records,
    start_stage_query,
)
from zerotail.wiring import SiteAdapters, run_to_end

_ROLE: Final = "stage"
_LOOK_SECONDS = 0.5
_ROOM_SECONDS = 0.05
_JUMP_SECONDS = 5.0
_BATCHES_BEHIND = 4
_PATIENCE_SECONDS = 0.5
"""So long the other partitions wait for a handler that is at one record."""


class RunningStage:
    """All partitions of one stage."""

    def __init__(
        self,
        spark: SparkSession,
        configuration: Configuration,
        site: SiteName,
        part: StagePart,
        say: Say,
        stopping: Event,
        *,
        standby: bool = False,
        decides: bool = True,
    ) -> None:
        """Of the stages of a standby one decides which of two instances goes on."""
        self._spark = spark
        self._configuration = configuration
        self._site = site
        self._part = part
        self._say = say
        self._stopping = stopping
        self._settings = adapter_settings(configuration, site)
        self._adapters = SiteAdapters(self._settings)
        # Batches come in a thread of their own.
        self._room = Session(self._settings.dsn, "zerotail stage")
        self._waiting = self._by_turns = standby
        self._decides = decides
        self._turn = Lock()
        self._turn_adapters = SiteAdapters(self._settings)
        self._stages: dict[PartitionNumber, Stage] = {}
        self._places: dict[PartitionNumber, Place] = {}
        self._ended: End | ZerotailError | None = None
        self._looked = 0.0
        self._query: StreamingQuery | None = None
        self._log, self._installation = "", UNMARKED
        self._started = 0.0
        self._query_ends = Event()
        self._alone: dict[PartitionNumber, Alone] = {}
        self._rooms: list[Session] = []

    @property
    def name(self) -> str:
        """Its name as a part."""
        return f"stage {self._part.name}"

    @property
    def waits_for_turn(self) -> bool:
        """Whether this site has not been the active one yet."""
        return self._waiting

    def start(self, checkpoint: str) -> StreamingQuery:
        """Claim every partition and read on behind its head; at a standby, read from the end and wait for the turn."""
        self._ended = None
        self._end_alone()
        self._query_ends.clear()
        prepared, live = prepare_or_wait(self._configuration, self._site, waiting=self._waiting)
        topic = prepared.topics[self._part.topic]
        partitions = [PartitionNumber(number) for number in range(prepared.partitions[self._part.topic])]
        self._stages = {partition: self._part.at(partition) for partition in partitions}
        self._places.clear()
        client = admin_client(self._settings.kafka)
        log, bounds = log_identity(client, topic), log_bounds(client, topic, partitions)
        if live:
            self._forget_other_logs(log)
            self._waiting = False
            self._claim()
        else:
            self.waits(WAITING)
        starts = {PartitionNumber(partition): behind for partition, (_, behind) in bounds.items()}
        starts |= {
            partition: start_offset(place.head.hint, log, bounds[partition])
            for partition, place in self._places.items()
        }
        limit = self._configuration.spark.max_records_per_batch
        records = read_records(self._spark, self._settings.kafka, topic, starts, limit)
        installation = next((place.standing for place in self._places.values()), prepared.standing).installation
        patience = min(_PATIENCE_SECONDS, self._part.handler_seconds)
        task = StageTask(self._stages, self._settings, log, installation, patience)
        alone = stage_query.Alone(self._alone.keys, self._send_away)
        self._log, self._installation, self._started = log, installation, time.monotonic()
        self._query = start_stage_query(
            records, task, self._places, checkpoint, self._note, self._may_take, self._remember, alone
        )
        return self._query

    def _claim(self) -> None:
        """Whoever worked on these partitions before is refused from now on."""
        for partition, stage in self._stages.items():
            place = run_to_end(claim_place(stage, self._site), self._turn_adapters)
            if isinstance(place, End):
                raise NotActiveError(f"site {self._site} is not the active one.", code="ZT461")
            self._places[partition] = place
        for partition in self._places:
            self._tell(partition)

    def _forget_other_logs(self, log: str) -> None:
        """What lay in a log that is not there any more stops nothing."""
        database = Session(self._settings.dsn, "zerotail stage")
        try:
            database.write(lambda connection: forget_other_logs(connection, self._part.name, log))
        finally:
            database.close()

    def _may_take(self) -> bool:
        """Whether a batch may be taken; waits while the outside is owed too much."""
        if not self._has_turn():
            return False
        self._wait_for_room()
        return True

    def _has_turn(self) -> bool:
        """Whether this site is the active one, since its start or by now.

        What a waiting query has read before is nothing but what the follower wrote, hence journaled. Producers send
        only after the turn has come, so a batch that holds a record of theirs finds it come.
        """
        with self._turn:
            if self._waiting:
                first = next(iter(self._stages))
                read = self._turn_adapters.carry_out(ReadHead(self._part.name, first))
                if isinstance(read, HeadRead) and read.standing.live_at(self._site):
                    self._forget_other_logs(self._log)
                    self._claim()
                    self._waiting = False
            return not self._waiting

    def observe(self) -> End | bool:
        """Whether a record that stopped a partition was decided about; an idle stage learns here that it is not the one
        that works any more.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return False
        self._looked = now
        has_turn = self._has_turn()
        if now - self._started > _JUMP_SECONDS and self._is_far_behind():
            return True
        if not has_turn:
            return False
        again = any(one.over for one in self._alone.values())
        for partition, place, read in self._read_heads():
            ended = self._must_end(partition, place, read)
            if ended is not None:
                return ended
            again |= place.stopped is not None and read.stopped is None
            again |= read.head.claim != place.head.claim
            again |= read.standing.installation != self._installation
        return again

    def _is_far_behind(self) -> bool:
        """Whether a start from the place where it has to read is sooner there than batch after batch would be.

        So it is at a site that came back: while it waited its follower has filled the topic with the whole history.
        Only what is journaled is passed over by that: before the turn nothing else is written, and at the turn the head
        says where to read. A stage that works reads behind its head, however much there is to read.
        """
        said = None if self._query is None else last_offsets(self._query)
        if said is None:
            return False
        reached, wanted = said
        if not self._waiting:
            hints = {partition: place.head.hint for partition, place in self._places.items()}
            wanted = {p: hint.offset for p, hint in hints.items() if hint is not None and hint.log == self._log}
        return records_between(reached, wanted) > _BATCHES_BEHIND * self._configuration.spark.max_records_per_batch

    def reason_to_end(self) -> End | ZerotailError | None:
        """Why the stage must not go on here: what its task said, if the database says the same."""
        self._query_ends.set()
        if isinstance(self._ended, ZerotailError) and not isinstance(self._ended, Unavailable):
            return self._ended
        if self._waiting:
            return None
        ends = (self._must_end(*seen) for seen in self._read_heads())
        return next((ended for ended in ends if ended is not None), None)

    def _read_heads(self) -> Iterator[tuple[PartitionNumber, Place, HeadRead]]:
        """Where each partition stands by what we know, and by what the database says; as far as it answers."""
        for partition, place in list(self._places.items()):
            read = self._adapters.carry_out(ReadHead(self._part.name, partition))
            if isinstance(read, HeadRead):
                yield partition, place, read

    def _must_end(self, partition: PartitionNumber, place: Place, read: HeadRead) -> End | None:
        decides = self._decides and partition == next(iter(self._stages))
        return reason_to_go(self._site, place, read, by_turns=self._by_turns, decides=decides)

    def waits(self, reason: str) -> None:
        """Say that no partition makes progress, and why."""
        for partition in self._places or self._stages or (PartitionNumber(0),):
            self._say(_ROLE, self._part.name, partition, "waiting", reason)

    def close(self) -> None:
        """Give back sessions and clients."""
        self._query_ends.set()
        self._end_alone()
        self._adapters.close()
        self._turn_adapters.close()
        self._room.close()

    def _send_away(self, partition: PartitionNumber, why: str) -> None:
        """Let a partition go on by itself until the next start: the others do not wait for it."""
        self._say(_ROLE, self._part.name, partition, "waiting", f"{why}: it goes on in a process of its own")
        topic = topic_at(self._part.topic, self._places[partition].standing.rejoined.get(self._site))
        job = Job(self._stages[partition], self._settings, topic, self._installation, self._part.handler_seconds)
        room = Session(self._settings.dsn, "zerotail stage")
        self._alone[partition] = Alone(job, self._places, self._note, partial(self._has_room, room, partition))
        self._rooms.append(room)

    def _has_room(self, room: Session, partition: PartitionNumber) -> bool:
        """Whether one partition does not owe too much."""
        owed = room.read(lambda connection: owed_bytes(connection, self._part.name, self._part.to_itself))
        return not isinstance(owed, dict) or owed.get(partition, 0) < self._part.owed_bytes

    def _end_alone(self) -> None:
        for one in self._alone.values():
            one.close()
        for room in self._rooms:
            room.close()
        self._alone.clear()
        self._rooms.clear()

    def _remember(self, ended: End | ZerotailError) -> None:
        self._ended = ended

    def _note(self, partition: PartitionNumber, taken: Taken) -> None:
        counters = {
            "applied": taken.applied,
            "repeats": taken.repeats,
            "orphans": taken.orphans,
            "foreign": taken.foreign,
            "other_installation": taken.strangers,
            "held": taken.held,
        }
        self._tell(partition, **counters)

    def _tell(self, partition: PartitionNumber, **counters: int) -> None:
        """Say that a partition works, or why it has stopped."""
        poison = self._places[partition].stopped
        reason = "" if poison is None else poison.reason
        if poison is not None and poison.producer != FOREIGN:
            reason = f"serial {poison.serial} of producer {poison.producer} at position {poison.position}: {reason}"
        self._say(_ROLE, self._part.name, partition, "stopped" if reason else "working", reason, {}, **counters)

    def _wait_for_room(self) -> None:
        """Take nothing more while the outside is owed too much, so that a slow receiver cannot fill the database."""
        waited = False
        while not (self._stopping.is_set() or self._query_ends.is_set()) and (reason := self._find_too_much()):
            for partition, place in list(self._places.items()):
                if place.stopped is None:
                    self._say(_ROLE, self._part.name, partition, "waiting", reason)
            waited = True
            self._query_ends.wait(_ROOM_SECONDS)
        for partition in list(self._places) if waited else ():
            self._tell(partition)

    def _find_too_much(self) -> str | None:
        """Which partition owes more than it may, in words."""
        allowed = self._part.owed_bytes
        owed = self._room.read(lambda connection: owed_bytes(connection, self._part.name, self._part.to_itself))
        for partition, waiting in owed.items() if isinstance(owed, dict) else ():
            if waiting >= allowed:
                return f"{waiting:,} bytes of partition {partition} wait for acknowledgement, {allowed:,} are allowed"
        return None


def reason_to_go(site: SiteName, place: Place, read: HeadRead, *, by_turns: bool, decides: bool) -> End | None:
    """Why whoever claimed a head must not go on; None when it may, or may claim it again.

    Two instances that wait for their turn claim at the same moment, each some heads before and some behind the other.
    If whoever lost any of them ended, both might end; if everybody claimed again, they would do so for ever. Hence one
    head decides: its claims come one after the other, and whoever has the last one goes on.
    """
    # A newer epoch of this very site is no end, though it may not be live for a moment.
    if not works_at(read.standing.lineage, site, read.standing.timeline):
        return End.NOT_ACTIVE
    if read.head.claim == place.head.claim:
        return None
    if not by_turns:
        return End.SUPERSEDED
    if read.head.epoch != place.head.epoch:
        # The turn went over and came back while nobody looked: those were the other site's claims.
        return End.NOT_ACTIVE
    return End.SUPERSEDED if decides else None


def start_offset(hint: Hint | None, log: str, bounds: tuple[Offset, Offset]) -> Offset:
    """Where to begin to read: at the hint if this log still has that place, else at its beginning.

    Producers then send again what the log lacks, and whatever it repeats is dropped.
    """
    first, behind = bounds
    if hint is None or hint.log != log or not first <= hint.offset <= behind:
        return FROM_THE_BEGINNING
    return hint.offset
