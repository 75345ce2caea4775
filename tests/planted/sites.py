"""Ways to make two sites differ (S9, S10, S11, S15)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    breaks,
    each,
    everywhere,
    flipped,
    journal,
    last_of_place,
    one,
    put,
    rows,
    same_place,
    without,
)
from zerotail.core.identity import (
    Position,
    SegmentNumber,
    Serial,
)
from zerotail.drill.history import (
    Emission,
    EpochOpened,
    FinalSegment,
    FinalSite,
    FinalState,
)

# S9 prefix agreement.


@breaks("S9")
def standby_lacks_the_last_segment(rng: random.Random, events: Events) -> Events | None:
    theirs = journal(events, "standby")
    return without(events, theirs[-1]) if theirs else None


@breaks("S9", "S10")
def standby_has_another_order(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in journal(events, "standby") if len(s.runs) > 1])
    return None if s is None else put(events, s, replace(s, runs=s.runs[::-1]))


@breaks("S9")
def standby_lacks_a_row(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events, "standby"))
    return None if row is None else without(events, row)


@breaks("S9")
def row_differs_at_the_standby(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events, "standby"))
    return None if row is None else put(events, row, replace(row, digest=flipped(row.digest)))


@breaks("S9")
def standby_has_a_row_of_its_own(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events, "standby"))
    return None if row is None else put(events, row, row, replace(row, serial=Serial(999), id="u-other"))


@breaks("S9")
def two_sites_end_active(rng: random.Random, events: Events) -> Events | None:
    other = one(rng, [site for site in each(events, FinalSite) if site.role != "active"])
    return None if other is None else put(events, other, replace(other, role="active"))


@breaks("S9")
def cut_is_not_in_the_journal(rng: random.Random, events: Events) -> Events | None:
    opened = one(rng, [e for e in each(events, EpochOpened) if e.cuts])
    if opened is None:
        return None
    first, *rest = opened.cuts
    changed = (
        replace(first, chain=flipped(first.chain))
        if rng.random() < 0.5
        else replace(first, next_position=Position(first.next_position + 1))
    )
    return put(events, opened, replace(opened, cuts=(changed, *rest)))


@breaks("S9", "S10", "S11")
def deposed_site_forked_before_the_cut(rng: random.Random, events: Events) -> Events | None:
    ours = {s.chain for s in journal(events)}
    s = one(rng, [s for s in journal(events, "deposed") if s.chain in ours])
    return None if s is None else put(events, s, replace(s, chain=flipped(s.chain)))


# S10 hash chain.


def _any_segment(rng: random.Random, events: Events) -> FinalSegment | None:
    return one(rng, [*journal(events), *journal(events, "standby")])


@breaks("S10")
def stored_content_hash_is_wrong(rng: random.Random, events: Events) -> Events | None:
    s = _any_segment(rng, events)
    return None if s is None else put(events, s, replace(s, content=flipped(s.content)))


@breaks("S10", "S9")
def stored_chain_hash_is_wrong(rng: random.Random, events: Events) -> Events | None:
    s = _any_segment(rng, events)
    return None if s is None else put(events, s, replace(s, chain=flipped(s.chain)))


@breaks("S10")
def link_to_the_previous_is_wrong(rng: random.Random, events: Events) -> Events | None:
    s = _any_segment(rng, events)
    return None if s is None else put(events, s, replace(s, previous=flipped(s.previous)))


@breaks("S10", "S2", "S17")
def segment_was_edited_at_both_sites(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, journal(events))
    if s is None:
        return None
    return everywhere(events, s, lambda s: replace(s, inputs=(flipped(s.inputs[0]), *s.inputs[1:])))


@breaks("S10", "S9", "S15", "S11", "S4", "S12", "S2", "S5", "S17")
def neighbours_change_numbers(rng: random.Random, events: Events) -> Events | None:
    first = one(rng, [s for s in journal(events) if s.segment == 1])
    if first is None:
        return None
    second = next((s for s in journal(events) if same_place(s, replace(first, segment=SegmentNumber(2)))), None)
    if second is None:
        return None
    changed = put(events, first, replace(second, segment=SegmentNumber(1)))
    return put(changed, second, replace(first, segment=SegmentNumber(2)))


@breaks("S10", "S9", "S12", "S1", "S2", "S5", "S17", "S15")
def segment_was_deleted(rng: random.Random, events: Events) -> Events | None:
    last = {id(s) for s in last_of_place(events)}
    s = one(rng, [s for s in journal(events) if id(s) not in last])
    return None if s is None else without(events, *(o for o in each(events, FinalSegment) if same_place(o, s)))


# S11 same state.


@breaks("S11")
def replay_leads_elsewhere(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in each(events, FinalState) if s.source == "replay"])
    return None if s is None else put(events, s, replace(s, digest=flipped(s.digest)))


@breaks("S11")
def stored_state_differs_between_sites(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in each(events, FinalState) if s.source == "database"])
    return None if s is None else put(events, s, replace(s, digest=flipped(s.digest)))


@breaks("S11", "S10")
def segment_emits_something_else_at_the_standby(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in journal(events, "standby") if s.emissions])
    if s is None:
        return None
    first, *rest = s.emissions
    other = Emission(first.channel, first.number, flipped(first.digest), first.target_partition)
    return put(events, s, replace(s, emissions=(other, *rest)))


@breaks("S11", "S10")
def segment_emits_less_at_the_standby(rng: random.Random, events: Events) -> Events | None:
    s = one(rng, [s for s in journal(events, "standby") if s.emissions])
    return None if s is None else put(events, s, replace(s, emissions=s.emissions[:-1]))


# S15 a fence is final.


def _behind_a_cut(events: Events) -> list[tuple[EpochOpened, FinalSegment]]:
    return [(opened, s) for opened in each(events, EpochOpened)[1:] for s in journal(events) if s.epoch == opened.epoch]


@breaks("S15", "S9", "S10")
def old_epoch_writes_behind_the_cut(rng: random.Random, events: Events) -> Events | None:
    found = one(rng, _behind_a_cut(events))
    if found is None:
        return None
    first = each(events, EpochOpened)[0].epoch
    return everywhere(events, found[1], lambda s: replace(s, epoch=first))


@breaks("S15", "S9", "S10")
def segment_carries_an_epoch_that_began_later(rng: random.Random, events: Events) -> Events | None:
    opened = one(rng, each(events, EpochOpened)[1:])
    lineage = next((site.epochs for site in each(events, FinalSite) if site.role == "active"), ())
    if opened is None or opened.epoch not in lineage:
        return None
    s = one(rng, [s for s in journal(events) if s.epoch < opened.epoch])
    return None if s is None else everywhere(events, s, lambda s: replace(s, epoch=opened.epoch))


@breaks("S15", "S9")
def cut_lies_before_segments_of_the_old_epoch(rng: random.Random, events: Events) -> Events | None:
    opened = one(rng, [e for e in each(events, EpochOpened) if e.cuts])
    if opened is None:
        return None
    first, *rest = opened.cuts
    earlier = replace(first, segment=SegmentNumber(first.segment - 1))
    return put(events, opened, replace(opened, cuts=(earlier, *rest)))


@breaks("S15", "S9")
def cut_lies_behind_segments_of_the_new_epoch(rng: random.Random, events: Events) -> Events | None:
    found = one(rng, _behind_a_cut(events))
    if found is None:
        return None
    opened, s = found
    cuts = tuple(c for c in opened.cuts if (c.stage, c.partition) != (s.stage, s.partition))
    own = [c for c in opened.cuts if (c.stage, c.partition) == (s.stage, s.partition)]
    return put(events, opened, replace(opened, cuts=(*cuts, replace(own[0], segment=s.segment)))) if own else None
