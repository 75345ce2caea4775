"""Ways to count wrongly (S3, S4, S5, S12)."""

from __future__ import annotations

import random
from itertools import pairwise

from msgspec.structs import replace

from planted.tools import (
    Events,
    accepted,
    breaks,
    each,
    everywhere,
    journal,
    last_of_place,
    one,
    put,
    rows,
    same_number,
    same_place,
    stream,
    without,
)
from zerotail.core.identity import (
    EmissionNumber,
    Position,
    SegmentNumber,
    Serial,
)
from zerotail.drill.history import (
    ChannelDeclared,
    DoubtListed,
    Emission,
    EmissionAttempted,
    FinalInstruction,
    FinalSegment,
    Run,
)

# S3 no duplicate.


@breaks("S3")
def number_is_accepted_twice(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events))
    return None if a is None else put(events, a, a, a)


@breaks("S3", "S6", "S7")
def repeat_is_accepted(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, [a for a in each(events, EmissionAttempted) if a.answer == "repeat"])
    return None if a is None else put(events, a, replace(a, answer="accepted"))


@breaks("S3")
def dumb_receiver_gets_a_number_twice_and_nobody_lists_it(rng: random.Random, events: Events) -> Events | None:
    listed = {(d.channel, d.partition, d.number) for d in each(events, DoubtListed)}
    a = one(rng, [a for a in accepted(events, "R3") if (a.channel, a.partition, a.number) not in listed])
    return None if a is None else put(events, a, a, a)


@breaks("S3")
def listed_doubt_is_accepted_once_too_often(rng: random.Random, events: Events) -> Events | None:
    doubt = one(rng, each(events, DoubtListed))
    if doubt is None:
        return None
    a = next(
        (
            a
            for a in accepted(events, "R3")
            if (a.channel, a.partition, a.number) == (doubt.channel, doubt.partition, doubt.number)
        ),
        None,
    )
    return None if a is None else put(events, a, *[a] * (2 + len(each(events, DoubtListed))))


@breaks("S3")
def crash_leaves_more_doubts_than_the_window(rng: random.Random, events: Events) -> Events | None:
    channel = one(rng, [c for c in each(events, ChannelDeclared) if c.receiver == "R3" and c.window])
    if channel is None or channel.window is None:
        return None
    some = one(rng, accepted(events, "R3"))
    if some is None or some.channel != channel.channel:
        return None
    doubts = [
        DoubtListed(
            channel=some.channel,
            partition=some.partition,
            number=EmissionNumber(number),
            epoch=some.epoch,
            incarnation=some.incarnation,
        )
        for number in range(1, channel.window + 2)
    ]
    return [*events, *doubts]


@breaks("S3", "S1", "S14", "S17", "S19")
def submission_has_two_rows(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events))
    if row is None:
        return None
    last = max(r.serial for r in rows(events) if (r.producer, r.partition) == (row.producer, row.partition))
    copies = [r for r in each(events, FinalInstruction) if r.id == row.id]
    return [*events, *(replace(copy, serial=Serial(last + 1)) for copy in copies)]


@breaks("S3", "S2", "S9")
def serial_is_given_twice(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events))
    return None if row is None else put(events, row, replace(row, id="u-other"), row)


# S4 no reorder.


@breaks("S4", "S6", "S7", "S8")
def neighbours_change_places_at_the_receiver(rng: random.Random, events: Events) -> Events | None:
    first = one(rng, accepted(events))
    if first is None:
        return None
    second = next((a for a in accepted(events) if stream(a) == stream(first) and a.number == first.number + 1), None)
    if second is None:
        return None
    changed = put(events, first, replace(second, time=first.time))
    return put(changed, second, replace(first, time=second.time))


@breaks("S4", "S6")
def number_comes_at_the_very_end(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events))
    if a is None or not any(stream(b) == stream(a) and b.number > a.number for b in accepted(events)):
        return None
    again = [b for b in same_number(events, a) if b is not a]
    return [*without(events, a, *again), a]


@breaks("S4", "S2", "S10", "S17")
def serials_change_places_in_a_run(rng: random.Random, events: Events) -> Events | None:
    segment = one(rng, [s for s in journal(events) if s.runs[0].count > 1])
    if segment is None:
        return None
    run = segment.runs[0]
    turned = (Run(run.producer, Serial(run.first_serial + 1), 1), Run(run.producer, run.first_serial, 1))
    rest = (Run(run.producer, Serial(run.first_serial + 2), run.count - 2),) if run.count > 2 else ()
    inputs = (segment.inputs[1], segment.inputs[0], *segment.inputs[2:])
    runs = (*turned, *rest, *segment.runs[1:])
    return everywhere(events, segment, lambda s: replace(s, runs=runs, inputs=inputs))


@breaks("S4", "S2", "S9", "S10", "S17")
def runs_change_places_between_segments(rng: random.Random, events: Events) -> Events | None:
    by_place: dict[tuple[str, int], list[FinalSegment]] = {}
    for segment in journal(events):
        by_place.setdefault((segment.stage, segment.partition), []).append(segment)
    pairs = [
        (a, b)
        for segments in by_place.values()
        for a, b in pairwise(segments)
        if {run.producer for run in a.runs} & {run.producer for run in b.runs}
    ]
    pair = one(rng, pairs)
    if pair is None:
        return None
    a, b = pair
    changed = everywhere(events, a, lambda s: replace(s, runs=b.runs, inputs=b.inputs))
    changed = everywhere(changed, b, lambda s: replace(s, runs=a.runs, inputs=a.inputs))
    size = len(b.inputs) - len(a.inputs)
    return everywhere(changed, b, lambda s: replace(s, first_position=Position(s.first_position + size)))


# S5 no gap.


@breaks("S5", "S1")
def number_is_passed_over(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events))
    if a is None or not any(stream(b) == stream(a) and b.number > a.number for b in accepted(events)):
        return None
    return without(events, *same_number(events, a))


@breaks("S5", "S1")
def several_numbers_are_passed_over(rng: random.Random, events: Events) -> Events | None:
    last = one(rng, list({stream(a): a for a in accepted(events)}.values()))
    if last is None or last.number < 3:
        return None
    first = rng.randint(1, last.number - 2)
    gone = [a for a in each(events, EmissionAttempted) if stream(a) == stream(last) and first <= a.number < last.number]
    return without(events, *gone)


@breaks("S5", "S1", "S2", "S10", "S11", "S17")
def journal_itself_leaps(rng: random.Random, events: Events) -> Events | None:
    segment = one(rng, [s for s in journal(events) if s.emissions])
    if segment is None:
        return None
    first, *rest = segment.emissions
    leapt = Emission(first.channel, EmissionNumber(first.number + 1), first.digest, first.target_partition)
    return everywhere(events, segment, lambda s: replace(s, emissions=(leapt, *rest)))


@breaks("S5", "S1")
def dumb_receiver_misses_a_number_that_nobody_lists(rng: random.Random, events: Events) -> Events | None:
    listed = {(d.channel, d.partition, d.number) for d in each(events, DoubtListed)}
    got = accepted(events, "R3")
    a = one(rng, [a for a in got if (a.channel, a.partition, a.number) not in listed])
    if a is None or not any(stream(b) == stream(a) and b.number > a.number for b in got):
        return None
    return without(events, *same_number(events, a))


# S12 source function.


@breaks("S12", "S2", "S9", "S10")
def record_stands_twice(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, journal(events))
    if s is None:
        return None
    again = Run(s.runs[0].producer, s.runs[0].first_serial, 1)
    return everywhere(events, s, lambda s: replace(s, runs=(*s.runs, again), inputs=(*s.inputs, s.inputs[0])))


@breaks("S12", "S1", "S2", "S10", "S17")
def record_is_passed_over(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, last_of_place(events))
    if s is None:
        return None
    run = s.runs[-1]
    last = Run(run.producer, Serial(run.first_serial + 1), run.count)
    return everywhere(events, s, lambda s: replace(s, runs=(*s.runs[:-1], last)))


@breaks("S12", "S9", "S10", "S17")
def positions_leave_a_hole(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, journal(events))
    if s is None:
        return None
    return everywhere(events, s, lambda s: replace(s, first_position=Position(s.first_position + 1)))


@breaks("S12", "S1", "S2", "S4", "S5", "S8", "S9", "S10", "S15", "S17")
def segment_is_missing(rng: random.Random, events: Events) -> Events | None:
    last = {id(segment) for segment in last_of_place(events)}
    gone = one(rng, [segment for segment in journal(events) if id(segment) not in last])
    if gone is None:
        return None
    return without(events, *(s for s in each(events, FinalSegment) if same_place(s, gone)))


@breaks("S12", "S9", "S10", "S15")
def two_segments_have_one_number(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in journal(events) if s.segment > 1])
    if s is None:
        return None
    return everywhere(events, s, lambda s: replace(s, segment=SegmentNumber(s.segment - 1)))


@breaks("S12", "S2", "S9", "S10", "S17")
def record_without_position(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, journal(events))
    return None if s is None else everywhere(events, s, lambda s: replace(s, inputs=s.inputs[:-1]))
