"""How long the checker takes for a long history: `python bench/checker.py [EVENTS]`, a million unless told.

The history has two producers, two channels, a takeover in the middle and both sites read at the end.
Generating and writing it is not counted. Seconds are wall clock, and processor time in brackets.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    Position,
    ProducerName,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    epoch_of,
)
from zerotail.core.verdict import Outcome
from zerotail.drill.checker import SIMULATED, Expect, check
from zerotail.drill.history import (
    ChannelClaimed,
    ChannelDeclared,
    Cut,
    Emission,
    EmissionAttempted,
    EpochOpened,
    Event,
    FinalInstruction,
    FinalSegment,
    FinalSite,
    FinalState,
    Released,
    Run,
    StageDeclared,
    SubmitAccepted,
    SubmitInvoked,
)
from zerotail.drill.recording import read_history

EAST, WEST = SiteName("east"), SiteName("west")
STAGE = StageName("settle")
PARTITION = PartitionNumber(0)
PRODUCERS = (ProducerName("A"), ProducerName("B"))
CHANNELS = (ChannelName("bank"), ChannelName("archive"))
LONG_BATCH, TINY_BATCH = 50, 5
EVENTS_PER_RECORD = 5


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def batches(count: int, size: int) -> Iterator[tuple[Epoch, SiteName, FinalSegment, list[FinalInstruction]]]:
    """Segments of `size` records of each producer; the second half is of another epoch."""
    previous = "00" * 32
    for number in range(count):
        east = number < count // 2
        epoch, site = (epoch_of(1, 0), EAST) if east else (epoch_of(2, 1), WEST)
        first = number * size + 1
        rows = [
            FinalInstruction(
                site=EAST,
                producer=producer,
                partition=PARTITION,
                serial=Serial(serial),
                id=f"{producer}-{serial}",
                digest=digest(f"{producer}{serial}"),
            )
            for producer in PRODUCERS
            for serial in range(first, first + size)
        ]
        segment = FinalSegment(
            site=EAST,
            stage=STAGE,
            partition=PARTITION,
            segment=SegmentNumber(number + 1),
            epoch=epoch,
            first_position=Position(number * 2 * size),
            runs=tuple(Run(producer, Serial(first), size) for producer in PRODUCERS),
            inputs=tuple(row.digest for row in rows),
            emissions=tuple(
                Emission(channel, EmissionNumber(e), digest(f"{channel}{e}"))
                for channel in CHANNELS
                for e in range(first, first + size)
            ),
            lsn=Lsn(number + 1),
        )
        text = msgspec.json.encode(
            (
                *(STAGE, PARTITION, segment.segment, epoch, segment.first_position, 0, ""),
                *(segment.runs, segment.inputs, segment.skipped, segment.emissions),
            )
        )
        content = hashlib.sha256(text).digest()
        chain = hashlib.sha256(bytes.fromhex(previous) + content).hexdigest()
        yield (
            epoch,
            site,
            replace(segment, previous=previous, content=content.hex(), chain=chain),
            rows,
        )
        previous = chain


def opening(epoch: Epoch, site: SiteName, before: FinalSegment | None) -> Iterator[tuple[str, Event]]:
    cuts: tuple[Cut, ...] = ()
    if before is not None:
        end = Position(before.first_position + len(before.inputs))
        cuts = (Cut(STAGE, PARTITION, before.segment, end, before.chain),)
    opened = EpochOpened(epoch=epoch, site=site, mode="gated", cause="start", cuts=cuts)
    yield "operator", replace(opened, mode="exposed", cause="takeover") if before else opened
    claim = ChannelClaimed(channel=CHANNELS[0], epoch=epoch, incarnation=Incarnation(1), site=site, answer="accepted")
    yield "receiver", claim


def sending(epoch: Epoch, site: SiteName, segment: FinalSegment) -> Iterator[tuple[str, Event]]:
    for channel in CHANNELS:
        last = max(e.number for e in segment.emissions)
        yield (
            "emitter",
            Released(
                site=site,
                epoch=epoch,
                incarnation=Incarnation(1),
                channel=channel,
                partition=PARTITION,
                through=last,
                by="gate" if site == EAST else "exposure",
                lsn_wanted=segment.lsn,
                other_lsn_flushed=segment.lsn,
                other_epoch=epoch,
            ),
        )
    for emission in segment.emissions:
        yield (
            "receiver",
            EmissionAttempted(
                channel=emission.channel,
                partition=PARTITION,
                number=emission.number,
                digest=emission.digest,
                epoch=epoch,
                incarnation=Incarnation(1),
                site=site,
                answer="accepted",
            ),
        )


def long_history(count: int, size: int) -> Iterator[tuple[str, Event]]:
    yield "operator", StageDeclared(stage=STAGE, producers=PRODUCERS)
    for channel, kind in zip(CHANNELS, ("R2", "R1"), strict=True):
        yield "operator", ChannelDeclared(channel=channel, stage=STAGE, receiver=kind)  # type: ignore[arg-type]
    before: FinalSegment | None = None
    epochs: list[Epoch] = []
    final: list[Event] = []
    for epoch, site, segment, rows in batches(count, size):
        if epoch not in epochs:
            epochs.append(epoch)
            yield from opening(epoch, site, before)
        for row in rows:
            invoked = SubmitInvoked(id=row.id, producer=row.producer, partition=PARTITION, digest=row.digest)
            yield "client", invoked
            yield "client", SubmitAccepted(id=row.id, serial=row.serial)
        yield from sending(epoch, site, segment)
        final += [*rows, segment]
        before = segment
    assert before is not None
    for site, role in ((WEST, "active"), (EAST, "standby")):
        yield "reader", FinalSite(site=site, role=role, epochs=tuple(epochs))  # type: ignore[arg-type]
        yield from (("reader", replace(event, site=site)) for event in final)
        for source in ("database", "replay"):
            state = FinalState(
                site=site,
                stage=STAGE,
                partition=PARTITION,
                segment=before.segment,
                digest="5a",
                source=source,
            )
            yield "reader", state


def write(directory: Path, count: int) -> int:
    """Write the files of all recorders; returns the number of events."""
    encode = msgspec.json.Encoder().encode
    sequences = dict.fromkeys(("operator", "client", "emitter", "receiver", "reader"), 0)
    files = {recorder: (directory / f"{recorder}.jsonl").open("wb") for recorder in sequences}
    clock = 0
    for clock, (recorder, event) in enumerate(long_history(count, LONG_BATCH), start=1):
        sequences[recorder] += 1
        stamped = replace(event, time=clock, recorder=recorder, sequence=sequences[recorder])
        files[recorder].write(encode(stamped) + b"\n")
    for file in files.values():
        file.close()
    return clock


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        events = write(directory, max(2, wanted // (2 * LONG_BATCH * EVENTS_PER_RECORD)))
        size = sum(path.stat().st_size for path in directory.iterdir())
        read = Stopwatch()
        history = read_history(directory)
        read_took = read.stop()
        judge = Stopwatch()
        verdict = check(history, Expect(faults=0, work_around_faults=False, states=()))
        judge_took = judge.stop()
    print(f"{events} events, {size / 1e6:.0f} MB: {verdict.outcome.value}")
    print(f"read  {read_took}")
    print(f"check {judge_took}")
    tiny = [
        replace(event, time=clock, recorder=recorder, sequence=clock)
        for clock, (recorder, event) in enumerate(long_history(2, TINY_BATCH), start=1)
    ]
    many = Stopwatch()
    for _ in range(1_000):
        assert check(tiny, SIMULATED).outcome is Outcome.PASSED  # type: ignore[arg-type]
    print(f"a thousand histories of {len(tiny)} events: check {many.stop()}")


class Stopwatch:
    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def stop(self) -> str:
        wall, processor = time.perf_counter() - self.wall, time.process_time() - self.processor
        return f"{wall:.2f} s ({processor:.2f} s)"


if __name__ == "__main__":
    main()
