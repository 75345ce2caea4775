"""Counted without repeats, leaps and turns, at the receiver and in the journal (S3, S4, S5, S12)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, pairwise

from zerotail.drill.checker.counting import Hole
from zerotail.drill.checker.facts import Facts, Stream
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import DoubtListed, EmissionAttempted, FinalInstruction, FinalSegment


def no_duplicate(facts: Facts) -> Iterator[Finding]:
    """S3: a number is accepted once (R3: once more per listed doubt), an instruction has one row."""
    for stream, received in facts.received.items():
        excused: dict[int, int] = {}
        for number, attempt in received.again:
            left = excused.setdefault(number, len(facts.listed(stream, number)))
            excused[number] = left - 1
            if left <= 0:
                first = next(a for a in facts.accepted[stream] if a.number == number)
                yield Finding(f"{_emission(stream, number)} was accepted twice", (first, attempt))
    yield from _too_many_doubts(facts)
    yield from _rows_that_stand_twice(facts)


def _too_many_doubts(facts: Facts) -> Iterator[Finding]:
    for stream, doubts in facts.doubts_of.items():
        window = facts.channel[stream[0]].window
        per_sender: dict[tuple[int, int], list[DoubtListed]] = defaultdict(list)
        for doubt in chain.from_iterable(doubts.values()):
            per_sender[doubt.epoch, doubt.incarnation].append(doubt)
        for listed in per_sender.values():
            if window is not None and len(listed) > window:
                says = f"one crash left {len(listed)} doubts on {stream[0]}, whose window is {window}"
                yield Finding(says, tuple(listed[window - 1 : window + 1]) if window else (listed[0],))


def _rows_that_stand_twice(facts: Facts) -> Iterator[Finding]:
    by_id: dict[str, FinalInstruction] = {}
    by_serial: dict[tuple[str, int, int], FinalInstruction] = {}
    for row in facts.rows:
        same_id = by_id.setdefault(row.id, row)
        if same_id is not row:
            yield Finding(f"submission {row.id} has two rows", (same_id, row))
        same_serial = by_serial.setdefault((row.producer, row.partition, row.serial), row)
        if same_serial is not row:
            says = f"serial {row.serial} of {row.producer}, partition {row.partition}, was given twice"
            yield Finding(says, (same_serial, row))


def no_reorder(facts: Facts) -> Iterator[Finding]:
    """S4: numbers are accepted, and serials journaled, in rising order."""
    for stream, received in facts.received.items():
        for late in received.late:
            if not facts.listed(stream, late.number):
                says = f"{_emission(stream, late.number)} came after a later one"
                yield Finding(says, (late.passed_by, late.evidence))
    for (stage, partition, producer), taken in facts.taken.items():
        for overtaken in taken.late:
            record = f"record {overtaken.number} of {producer}"
            says = f"{stage}, partition {partition}, took {record} after a later one"
            yield Finding(says, _once(overtaken.passed_by, overtaken.evidence))


def no_gap(facts: Facts) -> Iterator[Finding]:
    """S5: no number is passed over for good, and the journal itself counts without leaps."""
    for stream, received in facts.received.items():
        for hole in received.holes:
            number = _first_unexcused(facts, stream, hole)
            if number is not None:
                yield Finding(f"{_emission(stream, number)} was passed over", (hole.passed_by,))
    yield from _journal_emits_with_leaps(facts)


def _journal_emits_with_leaps(facts: Facts) -> Iterator[Finding]:
    expected: dict[Stream, int] = defaultdict(int)
    for (_, partition), segments in facts.journal.items():
        for segment in segments:
            for emission in segment.emissions:
                stream = (emission.channel, partition, emission.target_partition)
                expected[stream] += 1
                if emission.number != expected[stream]:
                    says = f"the journal emits {_emission(stream, emission.number)} not {expected[stream]}"
                    yield Finding(says, (segment,))
                    expected[stream] = emission.number


def _first_unexcused(facts: Facts, stream: Stream, hole: Hole[EmissionAttempted]) -> int | None:
    return next((n for n in range(hole.first, hole.next) if not facts.listed(stream, n)), None)


def source_function(facts: Facts) -> Iterator[Finding]:
    """S12: each serial has one position in the final journal; no serial, segment or position is left out."""
    for (stage, partition, producer), taken in facts.taken.items():
        where = f"{stage}, partition {partition},"
        for serial, segment in taken.again:
            first = _first_with(facts.journal[stage, partition], producer, serial)
            yield Finding(f"{where} took record {serial} of {producer} twice", _once(first, segment))
        for hole in taken.holes:
            yield Finding(f"{where} passed over record {hole.first} of {producer}", (hole.passed_by,))
    for segments in facts.journal.values():
        yield from _journal_counts(segments)


def _journal_counts(segments: list[FinalSegment]) -> Iterator[Finding]:
    first = segments[0]
    if (first.segment, first.first_position) != (1, 0):
        says = f"the journal begins with segment {first.segment} at position {first.first_position}"
        yield Finding(says, (first,))
    for segment in segments:
        if sum(run.count for run in segment.runs) != len(segment.inputs):
            yield Finding(f"segment {segment.segment} has not one record per position", (segment,))
    for before, after in pairwise(segments):
        if after.segment != before.segment + 1:
            says = f"segment {after.segment} follows segment {before.segment}"
            yield Finding(says, (before, after))
        elif after.first_position != before.first_position + len(before.inputs):
            next_position = before.first_position + len(before.inputs)
            says = f"segment {after.segment} begins at {after.first_position} where {next_position} was due"
            yield Finding(says, (before, after))


def _first_with(segments: list[FinalSegment], producer: str, serial: int) -> FinalSegment:
    return next(
        segment
        for segment in segments
        for run in segment.runs
        if run.producer == producer and run.first_serial <= serial < run.first_serial + run.count
    )


def _once(first: FinalSegment, second: FinalSegment) -> tuple[FinalSegment, ...]:
    return (first,) if first is second else (first, second)


def _emission(stream: Stream, number: int) -> str:
    channel, partition, target = stream
    toward = f" toward partition {target}" if target else ""
    return f"emission {number} of {channel}, partition {partition}{toward},"
