"""Clients and stages: submissions become rows, rows become segments."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from histories.database import (
    FIRST,
    HOP,
    Database,
    Row,
    Submission,
)
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Lsn,
    PartitionNumber,
    Position,
    ProducerName,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
)
from zerotail.drill.history import (
    Emission,
    Event,
    FinalSegment,
    PoisonDecided,
    Run,
    SubmitAccepted,
    SubmitFailed,
    SubmitInvoked,
    SubmitUnknown,
)


class Flow(Database):
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
                again = self.unknown if r.random() < 0.05 else None
                self._end(submission, SubmitAccepted(id=submission.id, serial=serial), again)
        elif not drain and r.random() < 0.1:
            self._end(submission, SubmitUnknown(id=submission.id), self.unknown)
        elif not drain and r.random() < 0.1:
            self._end(submission, SubmitFailed(id=submission.id), self.unknown if r.random() < 0.5 else None)
        else:
            serial = Serial(len(self.rows[submission.producer, submission.partition]) + 1)
            self.commit(Row(submission.producer, submission.partition, serial, submission.id, submission.digest))

    def _end(self, submission: Submission, event: Event, into: list[Submission] | None = None) -> None:
        self.pending.remove(submission)
        self.say("client", event)
        if into is not None:
            into.append(submission)

    def keep_busy(self) -> None:
        """One submission that is certainly acknowledged, so that there is work around every fault."""
        self.submit()
        while self.pending:
            self.flushed = self.lsn if self.in_force else self.flushed
            self.answer(drain=True)

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
                    if r.random() < 0.3:
                        self._decide(stage, producer, partition, serial, digest, "retry")
                    self._decide(stage, producer, partition, serial, digest, "skip")
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
        decision: str,
    ) -> None:
        decided = PoisonDecided(
            stage=stage,
            producer=producer,
            partition=partition,
            serial=serial,
            digest=digest,
            decision=decision,  # type: ignore[arg-type]
        )
        self.say("operator", decided)


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
