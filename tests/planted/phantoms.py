"""Ways to let something appear that nobody asked for (S2, S16)."""

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
    one,
    put,
    rows,
    stream,
    without,
)
from zerotail.core.identity import (
    EmissionNumber,
    SiteName,
)
from zerotail.drill.history import (
    DivergentSegment,
    Emission,
    FinalInstruction,
    FinalSite,
    SubmitAccepted,
    SubmitFailed,
    SubmitInvoked,
    SubmitUnknown,
)

# S2 no phantom.


@breaks("S2", "S6")
def accepted_emission_differs_from_the_journal(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events, "R0", "R1", "R2", "R3"))
    return None if a is None else put(events, a, replace(a, digest=flipped(a.digest)))


@breaks("S2", "S8")
def emission_beyond_the_journal_is_accepted(rng: random.Random, events: Events) -> Events | None:
    last = one(rng, list({stream(a): a for a in accepted(events)}.values()))
    if last is None:
        return None
    return put(events, last, last, replace(last, number=EmissionNumber(last.number + 1), digest="feed"))


@breaks("S2")
def row_was_never_submitted(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events))
    kinds = (SubmitInvoked, SubmitAccepted, SubmitUnknown, SubmitFailed)
    return None if row is None else [e for e in events if not (isinstance(e, kinds) and e.id == row.id)]


@breaks("S2")
def refused_submission_has_a_row(rng: random.Random, events: Events) -> Events | None:
    answer = one(rng, each(events, SubmitAccepted))
    if answer is None or sum(call.id == answer.id for call in each(events, SubmitInvoked)) > 1:
        return None
    return put(events, answer, SubmitFailed(id=answer.id, time=answer.time))


@breaks("S2", "S10", "S17")
def journaled_record_was_changed(rng: random.Random, events: Events) -> Events | None:
    segment = one(rng, journal(events))
    if segment is None:
        return None
    index = rng.randrange(len(segment.inputs))
    inputs = (*segment.inputs[:index], flipped(segment.inputs[index]), *segment.inputs[index + 1 :])
    return everywhere(events, segment, lambda s: replace(s, inputs=inputs))


@breaks("S2", "S17")
def row_was_changed(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events))
    if row is None:
        return None
    return [
        replace(e, digest=flipped(e.digest)) if type(e) is FinalInstruction and e.id == row.id else e for e in events
    ]


@breaks("S2", "S10", "S11", "S17")
def upstream_emission_was_changed(rng: random.Random, events: Events) -> Events | None:
    segment = one(rng, [s for s in journal(events) if any(e.channel == "moves" for e in s.emissions)])
    if segment is None:
        return None
    changed = tuple(
        Emission(e.channel, e.number, flipped(e.digest), e.target_partition) if e.channel == "moves" else e
        for e in segment.emissions
    )
    return everywhere(events, segment, lambda s: replace(s, emissions=changed))


# S16 no resurrection.


@breaks("S16", "S6", "S2")
def divergent_segment_is_in_the_final_journal(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, journal(events))
    site = next((site.site for site in each(events, FinalSite) if site.role != "active"), None)
    if s is None or site is None:
        return None
    divergent = DivergentSegment(
        site=site,
        stage=s.stage,
        partition=s.partition,
        segment=s.segment,
        epoch=s.epoch,
        chain=s.chain,
        found="audit",
    )
    return [*events, divergent]


@breaks("S16", "S2", "S6")
def emission_of_an_ended_lineage_is_accepted(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events))
    s = one(rng, journal(events))
    if a is None or s is None:
        return None
    divergent = DivergentSegment(
        site=SiteName("east"),
        stage=s.stage,
        partition=a.partition,
        segment=s.segment,
        epoch=a.epoch,
        chain="abcd",
        found="audit",
        emissions=(Emission(a.channel, a.number, "feed", a.target_partition),),
    )
    return [*put(events, a, replace(a, digest="feed")), divergent]


@breaks("S16")
def divergent_segment_is_not_kept(rng: random.Random, events: Events) -> Events | None:
    d = one(rng, [d for d in each(events, DivergentSegment) if d.found == "audit"])
    return None if d is None else without(events, d)


@breaks("S16", "S9", "S10", "S15")
def journal_has_an_epoch_of_no_lineage(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, journal(events))
    return None if s is None else everywhere(events, s, lambda s: replace(s, epoch=type(s.epoch)(s.epoch + 1)))
