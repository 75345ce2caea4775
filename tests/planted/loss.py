"""Ways to lose something (S1, S17)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    accepted,
    breaks,
    each,
    everywhere,
    flipped,
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
    Serial,
)
from zerotail.drill.history import (
    EmissionAttempted,
    FinalInstruction,
    FinalSegment,
    PoisonDecided,
    Run,
    SubmitAccepted,
    SubmitInvoked,
    SubmitUnknown,
)

# S1 no loss.


@breaks("S1", "S2", "S17")
def row_of_an_acknowledged_submission_is_gone(rng: random.Random, events: Events) -> Events | None:
    answer = one(rng, each(events, SubmitAccepted))
    if answer is None:
        return None
    return without(events, *(row for row in each(events, FinalInstruction) if row.id == answer.id))


@breaks("S1", "S2", "S5", "S9", "S17")
def tail_of_the_journal_is_cut_off(rng: random.Random, events: Events) -> Events | None:
    takers = [segment for segment in last_of_place(events) if segment.stage == "settle"]
    last = one(rng, takers)
    if last is None:
        return None
    told = {answer.id for answer in each(events, SubmitAccepted)}
    held = {(run.producer, serial) for run in last.runs for serial in _serials(run)}
    if not any(r.id in told and r.partition == last.partition and (r.producer, r.serial) in held for r in rows(events)):
        return None
    return without(events, *(s for s in each(events, FinalSegment) if same_place(s, last)))


@breaks("S1")
def last_emission_never_arrives(rng: random.Random, events: Events) -> Events | None:
    last = one(rng, list({stream(a): a for a in accepted(events)}.values()))
    return None if last is None else without(events, *same_number(events, last))


@breaks("S1")
def nothing_arrives_on_a_channel(rng: random.Random, events: Events) -> Events | None:
    some = one(rng, accepted(events))
    if some is None:
        return None
    return without(events, *(a for a in each(events, EmissionAttempted) if a.channel == some.channel))


@breaks("S1")
def submission_is_acknowledged_and_never_stored(rng: random.Random, events: Events) -> Events | None:
    call = one(rng, each(events, SubmitInvoked))
    if call is None:
        return None
    new = replace(call, id="u-new")
    return put(events, call, call, new, SubmitAccepted(id="u-new", time=call.time))


@breaks("S1", "S14")
def unknown_outcome_was_told_as_success(rng: random.Random, events: Events) -> Events | None:
    stored = {row.id for row in rows(events)}
    unknown = one(rng, [u for u in each(events, SubmitUnknown) if u.id not in stored])
    return None if unknown is None else put(events, unknown, SubmitAccepted(id=unknown.id, time=unknown.time))


# S17 conservation.


@breaks("S17")
def row_is_never_taken(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events))
    if row is None:
        return None
    last = max(r.serial for r in rows(events) if (r.producer, r.partition) == (row.producer, row.partition))
    new = [replace(r, id="u-new", serial=Serial(last + 1)) for r in each(events, FinalInstruction) if r.id == row.id]
    call = next(call for call in each(events, SubmitInvoked) if call.id == row.id)
    return [*put(events, call, call, replace(call, id="u-new")), SubmitUnknown(id="u-new"), *new]


@breaks("S17")
def skipped_record_has_no_decision(rng: random.Random, events: Events) -> Events | None:
    skipping = [s for s in journal(events) if s.skipped]
    if not skipping:
        return None
    return without(events, *each(events, PoisonDecided))


@breaks("S17")
def decision_is_about_other_bytes(rng: random.Random, events: Events) -> Events | None:
    if not any(s.skipped for s in journal(events)):
        return None
    return [replace(e, digest=flipped(e.digest)) if type(e) is PoisonDecided else e for e in events]


@breaks("S17", "S10")
def record_is_skipped_by_nobody(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in journal(events) if not s.skipped])
    return None if s is None else everywhere(events, s, lambda s: replace(s, skipped=(s.first_position,)))


@breaks("S17")
def decision_is_not_carried_out(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in journal(events) if not s.skipped])
    if s is None:
        return None
    decided = PoisonDecided(
        stage=s.stage,
        producer=s.runs[0].producer,
        partition=s.partition,
        serial=s.runs[0].first_serial,
        digest=s.inputs[0],
        decision="skip",
    )
    return [*events, decided]


@breaks("S17", "S1", "S2", "S9")
def second_stage_never_takes_what_the_first_emits(rng: random.Random, events: Events) -> Events | None:
    last = one(
        rng,
        [s for s in last_of_place(events) if s.stage == "ledger" and any("/" in r.producer for r in s.runs)],
    )
    return None if last is None else without(events, *(s for s in each(events, FinalSegment) if same_place(s, last)))


def _serials(run: Run) -> range:
    return range(run.first_serial, run.first_serial + run.count)
