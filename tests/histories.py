"""Clean histories from a seed: a small world that keeps every rule, with all that may rightly happen in one.

The world has a log of commits (rows, segments, epochs) at the active site, of which the other site has
flushed a prefix. A takeover keeps the prefix and forgets the rest; whatever left the system was released
behind it. So the histories hold unknown outcomes, retries, repeats, refused zombies, exposed periods, doubts,
divergent tails, handovers, skipped records and a second stage, and still break no rule. `clean(seed)` also
says what may be expected of the run, so that its verdict is *passed* and nothing less.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    Offset,
    PartitionNumber,
    Position,
    ProducerName,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    epoch_of,
)
from zerotail.drill.checker import Expect
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
    Cut,
    DivergentSegment,
    DoubtListed,
    Emission,
    EmissionAttempted,
    EpochOpened,
    Event,
    FaultBegan,
    FaultEnded,
    FinalInstruction,
    FinalSegment,
    FinalSite,
    FinalState,
    LimitBegan,
    LimitReached,
    Measured,
    MirrorCopy,
    MirrorSource,
    ModeChanged,
    PoisonDecided,
    ProcessEnded,
    ProcessStarted,
    Released,
    ReplicationChanged,
    Run,
    StageDeclared,
    SubmitAccepted,
    SubmitFailed,
    SubmitInvoked,
    SubmitUnknown,
    hop_producer,
)

Stream = tuple[ChannelName, PartitionNumber, PartitionNumber]
Place = tuple[StageName, PartitionNumber]

SITES = (SiteName("east"), SiteName("west"))
FIRST, SECOND = StageName("settle"), StageName("ledger")
HOP = ChannelName("moves")


@dataclass
class Row:
    producer: ProducerName
    partition: PartitionNumber
    serial: Serial
    id: str
    digest: str


@dataclass
class Submission:
    id: str
    producer: ProducerName
    partition: PartitionNumber
    digest: str
    row: Row | None = None
    lsn: int = 0


@dataclass
class Sender:
    """An emitter: which claim it has, what it released, and what it believes the receiver has."""

    site: SiteName
    epoch: Epoch
    incarnation: Incarnation
    released: dict[Stream, int] = field(default_factory=lambda: defaultdict(int))
    sent: dict[Stream, int] = field(default_factory=lambda: defaultdict(int))
    known: dict[Stream, list[str]] = field(default_factory=dict)
    """For a zombie: the digests it had when it was cut off."""

    @property
    def process(self) -> str:
        return f"emitter-{self.site}-{self.epoch}-{self.incarnation}"


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[AnyEvent] = []
        self.clock = 0
        self.sequences: dict[str, int] = defaultdict(int)
        r = self.random
        self.two_stages = r.random() < 0.5
        self.partitions = [PartitionNumber(p) for p in range(r.randint(1, 2))]
        self.producers = [ProducerName(name) for name in "ABC"[: r.randint(1, 3)]]
        classes = r.sample(["R0", "R1", "R2", "R3"], r.randint(1, 3))
        self.channels = {ChannelName(f"bank-{c}"): c for c in classes}
        self.takes: dict[StageName, list[ProducerName]] = {FIRST: list(self.producers)}
        self.stage_of = dict.fromkeys(self.channels, FIRST)
        if self.two_stages:
            self.takes[SECOND] = [hop_producer(FIRST, p) for p in self.partitions]
            if r.random() < 0.5:
                self.takes[SECOND].append(ProducerName("manual"))
                self.producers.append(ProducerName("manual"))
            self.stage_of[ChannelName("audit")] = SECOND
            self.channels[ChannelName("audit")] = r.choice(["R0", "R1", "R2", "R3"])
        self.window = r.choice([1, 2, None])
        # The database: commits with their place in the log, and how far the other site has flushed.
        self.log: list[tuple[int, Row | FinalSegment | Epoch]] = []
        self.lsn = 100
        self.flushed = 100
        self.in_force = True
        self.mode = "gated"
        self.active = 0
        self.generation = 0
        self.timeline = 1
        self.deposed_log: list[tuple[int, Row | FinalSegment | Epoch]] | None = None
        self.poisoned: set[tuple[Place, ProducerName, Serial, str]] = set()
        self.received: dict[Stream, int] = defaultdict(int)
        self.claims: dict[ChannelName, tuple[int, int]] = {}
        self.pending: list[Submission] = []
        self.unknown: list[Submission] = []
        self.zombies: list[Sender] = []
        self.held: set[tuple[Stream, int]] = set()
        self.submitted = 0
        self.incarnation = 0
        self.faults = 0
        self._fold()

    # Saying and committing.

    def say(self, recorder: str, event: Event) -> None:
        self.clock += self.random.randint(1, 3)
        self.sequences[recorder] += 1
        stamped = replace(event, time=self.clock, recorder=recorder, sequence=self.sequences[recorder])
        self.events.append(stamped)  # type: ignore[arg-type]

    def commit(self, item: Row | FinalSegment | Epoch) -> int:
        self.lsn += self.random.randint(1, 50)
        self.log.append((self.lsn, item))
        self._apply(self.lsn, item)
        return self.lsn

    def _fold(self) -> None:
        self.rows: dict[tuple[ProducerName, PartitionNumber], list[Row]] = defaultdict(list)
        self.row_of: dict[str, tuple[int, Row]] = {}
        self.journal: dict[Place, list[FinalSegment]] = defaultdict(list)
        self.vector: dict[tuple[Place, ProducerName], int] = defaultdict(int)
        self.owed: dict[Stream, list[tuple[str, int]]] = defaultdict(list)
        for lsn, item in self.log:
            self._apply(lsn, item)

    def _apply(self, lsn: int, item: Row | FinalSegment | Epoch) -> None:
        if isinstance(item, Row):
            self.rows[item.producer, item.partition].append(item)
            self.row_of[item.id] = (lsn, item)
        elif isinstance(item, FinalSegment):
            place = (item.stage, item.partition)
            self.journal[place].append(item)
            for run in item.runs:
                self.vector[place, run.producer] += run.count
            for emission in item.emissions:
                stream = (emission.channel, item.partition, emission.target_partition)
                self.owed[stream].append((emission.digest, lsn))

    @property
    def site(self) -> SiteName:
        return SITES[self.active]

    @property
    def durable(self) -> int:
        return self.lsn if self.mode == "exposed" else self.flushed

    def flush(self) -> None:
        if self.in_force:
            self.flushed = self.random.randint(self.flushed, self.lsn)

    # Clients.

    def submit(self) -> None:
        r = self.random
        if self.unknown and r.random() < 0.5:
            submission = self.unknown.pop(r.randrange(len(self.unknown)))
        else:
            self.submitted += 1
            name = f"u-{self.submitted}"
            submission = Submission(name, r.choice(self.producers), r.choice(self.partitions), self._digest(name))
        invoked = SubmitInvoked(
            id=submission.id,
            producer=submission.producer,
            partition=submission.partition,
            digest=submission.digest,
        )
        self.say("client", invoked)
        self.pending.append(submission)

    def answer(self, *, drain: bool = False) -> None:
        if not self.pending:
            return
        r = self.random
        submission = r.choice(self.pending)
        if submission.id in self.row_of:
            submission.lsn, submission.row = self.row_of[submission.id]
            if not drain and r.random() < 0.15:
                self._end(submission, SubmitUnknown(id=submission.id, reason="time-out"), self.unknown)
            elif submission.lsn <= self.durable:
                serial = submission.row.serial if r.random() < 0.8 else None
                self._end(submission, SubmitAccepted(id=submission.id, serial=serial))
        elif not drain and r.random() < 0.1:
            self._end(submission, SubmitUnknown(id=submission.id), self.unknown)
        elif not drain and r.random() < 0.1:
            self._end(submission, SubmitFailed(id=submission.id))
        else:
            serial = Serial(len(self.rows[submission.producer, submission.partition]) + 1)
            self.commit(Row(submission.producer, submission.partition, serial, submission.id, submission.digest))

    def _end(self, submission: Submission, event: Event, into: list[Submission] | None = None) -> None:
        self.pending.remove(submission)
        self.say("client", event)
        if into is not None:
            into.append(submission)

    # Stages.

    def _available(self, stage: StageName, partition: PartitionNumber) -> Iterator[tuple[ProducerName, str]]:
        for producer in self.takes[stage]:
            done = self.vector[(stage, partition), producer]
            if "/" in producer:
                source = PartitionNumber(int(producer.split("/")[1]))
                emitted = self.owed[HOP, source, partition]
                yield from ((producer, digest) for digest, lsn in emitted[done:] if lsn <= self.durable)
            else:
                yield from ((producer, row.digest) for row in self.rows[producer, partition][done:])

    def apply(self, stage: StageName | None = None, partition: PartitionNumber | None = None) -> bool:
        r = self.random
        stage = stage or r.choice(list(self.takes))
        partition = r.choice(self.partitions) if partition is None else partition
        waiting: dict[ProducerName, list[str]] = defaultdict(list)
        for producer, digest in self._available(stage, partition):
            waiting[producer].append(digest)
        order: list[tuple[ProducerName, Serial, str]] = []
        next_serial = {p: self.vector[(stage, partition), p] + 1 for p in waiting}
        for _ in range(r.randint(1, 6)):
            if not waiting:
                break
            producer = r.choice(list(waiting))
            order.append((producer, Serial(next_serial[producer]), waiting[producer].pop(0)))
            next_serial[producer] += 1
            if not waiting[producer]:
                del waiting[producer]
        if order:
            self.commit_segment(stage, partition, order)
        return bool(order)

    def commit_segment(
        self, stage: StageName, partition: PartitionNumber, order: list[tuple[ProducerName, Serial, str]]
    ) -> None:
        r = self.random
        place = (stage, partition)
        before = self.journal[place][-1] if self.journal[place] else None
        first = Position(before.first_position + len(before.inputs)) if before else Position(0)
        runs: list[Run] = []
        skipped: list[Position] = []
        emissions: list[Emission] = []
        numbers = {stream: len(owed) for stream, owed in self.owed.items()}
        for index, (producer, serial, digest) in enumerate(order):
            if runs and runs[-1].producer == producer:
                runs[-1] = Run(producer, runs[-1].first_serial, runs[-1].count + 1)
            else:
                runs.append(Run(producer, serial, 1))
            key = (place, producer, serial, digest)
            if key in self.poisoned or r.random() < 0.02:
                if key not in self.poisoned:
                    self._decide(stage, producer, partition, serial, digest)
                self.poisoned.add(key)
                skipped.append(Position(first + index))
                continue
            for channel in r.choices(self._channels_of(stage), k=r.choice([0, 1, 1, 2])):
                target = r.choice(self.partitions) if channel == HOP else PartitionNumber(0)
                stream = (channel, partition, target)
                numbers[stream] = numbers.get(stream, 0) + 1
                content = self._digest(f"{stream}{numbers[stream]}{r.random()}")
                emissions.append(Emission(channel, EmissionNumber(numbers[stream]), content, target))
        segment = FinalSegment(
            site=SiteName(""),
            stage=stage,
            partition=partition,
            segment=SegmentNumber(before.segment + 1 if before else 1),
            epoch=self.epoch,
            first_position=first,
            runs=tuple(runs),
            inputs=tuple(digest for _, _, digest in order),
            emissions=tuple(emissions),
            skipped=tuple(skipped),
            decided_at=self.clock,
            version=r.choice(["", "1", "2"]),
            lsn=Lsn(self.lsn + 1 if r.random() < 0.7 else 0),
        )
        self.commit(chained(segment, before.chain if before else "00" * 32))

    def _channels_of(self, stage: StageName) -> list[ChannelName]:
        own = [channel for channel, of in self.stage_of.items() if of == stage]
        return [*own, HOP] if self.two_stages and stage == FIRST else own

    def _decide(
        self,
        stage: StageName,
        producer: ProducerName,
        partition: PartitionNumber,
        serial: Serial,
        digest: str,
    ) -> None:
        decided = PoisonDecided(
            stage=stage,
            producer=producer,
            partition=partition,
            serial=serial,
            digest=digest,
            decision="skip",
        )
        self.say("operator", decided)

    # Sending and receiving.

    def start_sender(self) -> None:
        self.incarnation += 1
        self.sender = Sender(self.site, self.epoch, Incarnation(self.incarnation))
        s = self.sender
        started = ProcessStarted(process=s.process, site=s.site, epoch=s.epoch, incarnation=s.incarnation)
        self.say("lab", started)
        for channel, kind in self.channels.items():
            if kind == "R2":
                self.claims[channel] = (s.epoch, s.incarnation)
                claimed = ChannelClaimed(
                    channel=channel, epoch=s.epoch, incarnation=s.incarnation, site=s.site, answer="accepted"
                )
                self.say("receiver", claimed)
        for stream, last in self.received.items():
            forgotten = self.random.randint(0, 2) if self.channels[stream[0]] in ("R0", "R1") else 0
            s.sent[stream] = max(0, last - forgotten)

    def crash_sender(self) -> None:
        """The sender dies with one number of an R3 channel in flight; the next one lists it as a doubt."""
        self.keep_busy()
        for stage in self.takes:
            self.apply(stage)
        self.flush()
        self.release()
        for stream in [s for s in self._streams() if self.channels[s[0]] == "R3"]:
            number = self.sender.sent[stream] + 1
            if number <= self.sender.released[stream] and self.random.random() < 0.7:
                arrived = self.random.random() < 0.5
                if arrived:
                    self._attempt(self.sender, stream, number)
                self._doubt(stream, number)
                if self.random.random() < 0.5:
                    self.received[stream] = number - 1  # to be sent again
                else:
                    self.received[stream] = number
        self.say("lab", ProcessEnded(process=self.sender.process, exit_code=-9, reason="killed"))

    def _doubt(self, stream: Stream, number: int) -> None:
        listed = DoubtListed(
            channel=stream[0],
            partition=stream[1],
            target_partition=stream[2],
            number=EmissionNumber(number),
            epoch=self.sender.epoch,
            incarnation=self.sender.incarnation,
        )
        self.say("emitter", listed)

    def _streams(self) -> list[Stream]:
        return [stream for stream in list(self.owed) if stream[0] != HOP]

    def release(self) -> None:
        s = self.sender
        for stream in self._streams():
            through = sum(lsn <= self.durable for _, lsn in self.owed[stream])
            if through > s.released[stream]:
                s.released[stream] = through
                self.say("emitter", self._release(stream, through))

    def _release(self, stream: Stream, through: int) -> Released:
        s = self.sender
        released = Released(
            site=s.site,
            epoch=s.epoch,
            incarnation=s.incarnation,
            channel=stream[0],
            partition=stream[1],
            target_partition=stream[2],
            through=EmissionNumber(through),
            by="exposure",
        )
        if self.mode == "exposed":
            return released
        return replace(
            released,
            by="gate",
            timeline=Timeline(self.timeline),
            lsn_wanted=Lsn(self.random.randint(self.owed[stream][through - 1][1], self.flushed)),
            other_lsn_flushed=Lsn(self.flushed),
            other_timeline=Timeline(self.timeline),
            other_epoch=s.epoch,
        )

    def emit(self) -> None:
        r, s = self.random, self.sender
        self.release()
        for stream in self._streams():
            kind = self.channels[stream[0]]
            while s.sent[stream] < s.released[stream] and r.random() < 0.9:
                number = s.sent[stream] + 1
                if kind in ("R0", "R2") and number < s.released[stream] and r.random() < 0.05:
                    self._attempt(s, stream, number + 1)
                self._attempt(s, stream, number)
                if kind != "R3" and r.random() < 0.1:
                    self._attempt(s, stream, number)
                s.sent[stream] = number

    def haunt(self) -> None:
        """A sender of an ended epoch sends something that it had released."""
        r = self.random
        if not self.zombies:
            return
        zombie = r.choice(self.zombies)
        streams = [s for s, through in zombie.released.items() if through and self.channels[s[0]] != "R3"]
        if not streams:
            return
        stream = r.choice(streams)
        number = r.randint(1, min(zombie.released[stream], self.received[stream] + 1))
        if self._attempt(zombie, stream, number, zombie.known[stream]) == "older-epoch":
            self.say("lab", ProcessEnded(process=zombie.process, exit_code=5, reason="fenced"))
            self.zombies.remove(zombie)

    def _attempt(self, sender: Sender, stream: Stream, number: int, digests: list[str] | None = None) -> str:
        last = self.received[stream]
        kind = self.channels[stream[0]]
        answer = "accepted"
        if kind == "R2" and (sender.epoch, sender.incarnation) < self.claims[stream[0]]:
            answer = "older-epoch"
        elif number <= last:
            answer = "repeat"
        elif number > last + 1:
            answer = "gap"
        if answer == "accepted":
            self.received[stream] = number
        known = digests if digests is not None else [digest for digest, _ in self.owed[stream]]
        attempted = EmissionAttempted(
            channel=stream[0],
            partition=stream[1],
            target_partition=stream[2],
            number=EmissionNumber(number),
            digest=known[number - 1],
            epoch=sender.epoch,
            incarnation=sender.incarnation,
            site=sender.site,
            answer=answer,  # type: ignore[arg-type]
        )
        self.say("receiver", attempted)
        return answer

    # Epochs, disasters and their end.

    def open_epoch(self, cause: str, mode: str) -> None:
        self.generation += 1
        self.epoch = epoch_of(self.generation, self.active)
        self.mode = mode
        cuts = tuple(
            Cut(
                stage,
                partition,
                segments[-1].segment,
                Position(segments[-1].first_position + len(segments[-1].inputs)),
                segments[-1].chain,
            )
            for (stage, partition), segments in self.journal.items()
            if segments
        )
        self.commit(self.epoch)
        opened = EpochOpened(
            epoch=self.epoch,
            site=self.site,
            mode=mode,  # type: ignore[arg-type]
            cause=cause,  # type: ignore[arg-type]
            timeline=Timeline(self.timeline),
            cuts=cuts,
        )
        self.say("operator", opened)
        if mode == "gated":
            self.flushed = self.lsn

    def retire_sender(self) -> None:
        zombie = self.sender
        zombie.known = {stream: [digest for digest, _ in owed] for stream, owed in self.owed.items()}
        self.zombies.append(zombie)

    def takeover(self) -> None:
        self.faults += 1
        fault = f"f{self.faults}"
        site = self.site
        began = FaultBegan(fault=fault, action="kill -9", target=site, bit=True, evidence="pids gone")
        self.say("nemesis", began)
        self.say("operator", LimitBegan(rule="L1", what=f"takeover {fault}", limit=10_000))
        self.retire_sender()
        self.deposed_log = self.log
        self.log = [(lsn, item) for lsn, item in self.log if lsn <= self.flushed]
        self.unknown += self.pending
        for submission in self.pending:
            self.say("client", SubmitUnknown(id=submission.id, reason="reset"))
        self.pending = []
        self._fold()
        self.active = 1 - self.active
        self.timeline += 1
        self.in_force = False
        self.open_epoch("takeover", "exposed")
        self.start_sender()
        self.work(self.random.randint(2, 15))
        self.keep_busy()
        self.say("operator", LimitReached(rule="L1", what=f"takeover {fault}"))
        self.fault_to_end = fault

    def rejoin(self) -> None:
        """The deposed site comes back as standby; what only it had is kept for audit."""
        assert self.deposed_log is not None
        other = SITES[1 - self.active]
        ours = {item.chain for _, item in self.log if isinstance(item, FinalSegment)}
        theirs = [item for _, item in self.deposed_log if isinstance(item, FinalSegment)]
        tail = [segment for segment in theirs if segment.chain not in ours]
        for found in ("deposed", "audit"):
            for segment in tail:
                divergent = DivergentSegment(
                    site=other,
                    stage=segment.stage,
                    partition=segment.partition,
                    segment=segment.segment,
                    epoch=segment.epoch,
                    chain=segment.chain,
                    found=found,
                    emissions=segment.emissions,
                )
                self.say("reader", divergent)
        self.deposed_log = None
        self.say("nemesis", FaultEnded(fault=self.fault_to_end))
        self.attach()

    def attach(self) -> None:
        self.in_force = True
        self.say("database", ReplicationChanged(site=self.site, in_force=True))
        self.flushed = self.lsn
        if self.mode == "exposed":
            self.mode = "gated"
            self.say("operator", ModeChanged(epoch=self.epoch, site=self.site, mode="gated"))
        self.keep_busy()

    def lose_standby(self) -> None:
        """The other site is cut off for a while; sometimes an operator states that it is out."""
        self.faults += 1
        fault = f"f{self.faults}"
        self.say("nemesis", FaultBegan(fault=fault, action="cut", target="link", bit=True, evidence="no ack"))
        self.flushed = self.random.randint(self.flushed, self.lsn)
        sent = self.random.choice([self.flushed, self.lsn])
        self.in_force = False
        away = ReplicationChanged(site=self.site, in_force=False, lsn_sent=Lsn(sent))
        self.say("database", away)
        self.work(self.random.randint(2, 10))
        if self.random.random() < 0.5:
            self.mode = "exposed"
            changed = ModeChanged(epoch=self.epoch, site=self.site, mode="exposed", operator=True)
            self.say("operator", changed)
            self.work(self.random.randint(2, 10))
            self.keep_busy()
        else:
            self.submit()
        self.attach()
        self.say("nemesis", FaultEnded(fault=fault))
        self.keep_busy()

    def restart_sender(self) -> None:
        self.faults += 1
        fault = f"f{self.faults}"
        target = self.sender.process
        self.say("nemesis", FaultBegan(fault=fault, action="kill -9", target=target, bit=True, evidence="pid gone"))
        self.crash_sender()
        self.start_sender()
        self.keep_busy()
        self.say("nemesis", FaultEnded(fault=fault))
        self.keep_busy()

    def handover(self) -> None:
        self.say("operator", LimitBegan(rule="L5", what=f"handover {self.generation}", limit=10_000))
        self.flushed = self.lsn
        self.retire_sender()
        self.active = 1 - self.active
        self.timeline += 1
        self.open_epoch(self.random.choice(["handover", "failback"]), "gated")
        self.start_sender()
        self.keep_busy()
        self.say("operator", LimitReached(rule="L5", what=f"handover {self.generation - 1}"))

    # The run.

    def work(self, steps: int) -> None:
        steps_of: list[Callable[[], object]] = [
            self.submit,
            self.answer,
            self.answer,
            self.apply,
            self.flush,
            self.emit,
            self.haunt,
        ]
        for _ in range(steps):
            self.random.choice(steps_of)()

    def keep_busy(self) -> None:
        """One submission that is certainly acknowledged, so that there is work around every fault."""
        self.submit()
        while self.pending:
            self.flushed = self.lsn if self.in_force else self.flushed
            self.answer(drain=True)

    def declare(self) -> None:
        for stage, producers in self.takes.items():
            self.say("operator", StageDeclared(stage=stage, producers=tuple(producers)))
        for channel, kind in self.channels.items():
            declared = ChannelDeclared(
                channel=channel,
                stage=self.stage_of[channel],
                receiver=kind,  # type: ignore[arg-type]
                window=self.window if kind == "R3" else None,
            )
            self.say("operator", declared)
        if self.two_stages:
            hop = ChannelDeclared(channel=HOP, stage=FIRST, receiver="stage", target_stage=SECOND)
            self.say("operator", hop)

    def run(self) -> None:
        r = self.random
        self.declare()
        self.open_epoch("start", "gated")
        self.start_sender()
        self.keep_busy()
        for disaster in r.choices(
            [self.takeover, self.lose_standby, self.handover, self.restart_sender], k=r.randint(1, 3)
        ):
            self.work(r.randint(5, 30))
            if self.deposed_log is not None:
                self.rejoin()
            disaster()
        self.work(r.randint(5, 20))
        self.leave_other = r.choice(["standby", "deposed", "lost"]) if self.deposed_log else "standby"
        if self.deposed_log is not None and self.leave_other == "standby":
            self.rejoin()
        self.drain()
        self.read_sites()
        self.mirror()

    def drain(self) -> None:
        self.say("nemesis", LimitBegan(rule="L2", what="drain", limit=1_000_000))
        self.keep_busy()
        while sum(self.apply(s, p) for s in self.takes for p in self.partitions):
            self.flushed = self.lsn if self.in_force else self.flushed
        self.flushed = self.lsn if self.in_force else self.flushed
        while any(self.sender.sent[s] < len(self.owed[s]) for s in self._streams()):
            self.emit()
        self.say("nemesis", LimitReached(rule="L2", what="drain"))
        self.say("lab", Measured(rule="L3", what="oldest open transaction", value=0.4, limit=10))
        self.say("lab", Measured(rule="L6", what="processor share of the waiting emitter", value=1, limit=5))
        self.say("lab", Measured(rule="L7", what="seconds waited without a reason", value=0, limit=2))

    def read_sites(self) -> None:
        self._read(self.site, "active", self.log)
        other = SITES[1 - self.active]
        match self.leave_other:
            case "standby":
                self._read(other, "standby", self.log)
            case "deposed":
                assert self.deposed_log is not None
                self._read(other, "deposed", self.deposed_log)
            case _:
                self.say("reader", FinalSite(site=other, role="lost"))
        for (stage, partition), segments in self.journal.items():
            for segment in segments[-1:] + self.random.sample(segments, min(2, len(segments))):
                digest = self._digest(f"state {segment.chain}")
                for site in (self.site, other) if self.leave_other == "standby" else (self.site,):
                    for source in ("database", "replay"):
                        state = FinalState(
                            site=site,
                            stage=stage,
                            partition=partition,
                            segment=segment.segment,
                            digest=digest,
                            source=source,
                        )
                        self.say("reader", state)

    def _read(self, site: SiteName, role: str, log: list[tuple[int, Row | FinalSegment | Epoch]]) -> None:
        epochs = tuple(item for _, item in log if isinstance(item, int))
        self.say("reader", FinalSite(site=site, role=role, epochs=epochs))  # type: ignore[arg-type]
        for _, item in log:
            if isinstance(item, Row):
                row = FinalInstruction(
                    site=site,
                    producer=item.producer,
                    partition=item.partition,
                    serial=item.serial,
                    id=item.id,
                    digest=item.digest,
                )
                self.say("reader", row)
            elif isinstance(item, FinalSegment):
                self.say("reader", replace(item, site=site))

    def mirror(self) -> None:
        offset = Offset(0)
        count = self.random.randint(3, 8)
        copied = self.random.randint(2, count)
        for index in range(count):
            digest = self._digest(f"mirrored {index}")
            source = MirrorSource(mirror="audit", partition=PartitionNumber(0), offset=offset, digest=digest)
            self.say("reader", source)
            if index < copied:
                copy = MirrorCopy(
                    mirror="audit",
                    partition=PartitionNumber(0),
                    offset=Offset(index * 2),
                    source_offset=offset,
                    digest=digest,
                )
                self.say("reader", copy)
            offset = Offset(offset + self.random.randint(1, 2))

    def _digest(self, text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def expectation(self) -> Expect:
        """What this run has certainly shown."""
        return Expect(
            faults=self.faults,
            work_during_faults=False,
            states=("unknown outcome",) if any(type(e) is SubmitUnknown for e in self.events) else (),
            limits=("L2", "L3", "L6", "L7"),
            standby=self.leave_other == "standby",
            work=False,
            fenced_process_limit=5,
        )


def chained(segment: FinalSegment, previous: str) -> FinalSegment:
    """The segment with its hashes, computed as `docs/verdicts.md` says."""
    text = json.dumps(
        [
            segment.stage,
            segment.partition,
            segment.segment,
            segment.epoch,
            segment.first_position,
            segment.decided_at,
            segment.version,
            [[run.producer, run.first_serial, run.count] for run in segment.runs],
            list(segment.inputs),
            list(segment.skipped),
            [[e.channel, e.number, e.digest, e.target_partition] for e in segment.emissions],
        ],
        separators=(",", ":"),
    )
    content = hashlib.sha256(text.encode()).digest()
    return replace(
        segment,
        previous=previous,
        content=content.hex(),
        chain=hashlib.sha256(bytes.fromhex(previous) + content).hexdigest(),
    )


def clean(seed: int) -> tuple[list[AnyEvent], Expect]:
    """The events of a run that keeps every rule, and what may be expected of it."""
    world = World(seed)
    world.run()
    return world.events, world.expectation()
