"""Violations to be planted into clean histories: for each rule several ways to break it.

A plant takes the events of a clean history and gives back events in which one rule is broken, or None where
this history offers no place for it. `also` names the other rules that the same damage may rightly break: a
lost segment loses emissions too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from msgspec.structs import replace

from zerotail.core.identity import (
    EmissionNumber,
    Lsn,
    Offset,
    Position,
    SegmentNumber,
    Serial,
    SiteName,
    Timeline,
)
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
    DivergentSegment,
    DoubtListed,
    Emission,
    EmissionAttempted,
    EpochOpened,
    FaultBegan,
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
    Released,
    ReplicationChanged,
    Run,
    SubmitAccepted,
    SubmitFailed,
    SubmitInvoked,
    SubmitUnknown,
)

Events = list[AnyEvent]
Plant = Callable[[random.Random, Events], Events | None]
K = TypeVar("K")


@dataclass(frozen=True)
class Planted:
    rule: str
    plant: Plant
    also: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.rule} {self.plant.__name__.replace('_', ' ')}"


PLANTED: list[Planted] = []


def breaks(rule: str, *also: str) -> Callable[[Plant], Plant]:
    """Register a plant under the rule it breaks."""

    def register(plant: Plant) -> Plant:
        PLANTED.append(Planted(rule, plant, frozenset(also)))
        return plant

    return register


# Finding and changing events.


def each(events: Events, kind: type[K]) -> list[K]:
    return [event for event in events if type(event) is kind]


def one(rng: random.Random, found: list[K]) -> K | None:
    return rng.choice(found) if found else None


def without(events: Events, *gone: AnyEvent) -> Events:
    left = {id(event) for event in gone}
    return [event for event in events if id(event) not in left]


def put(events: Events, old: AnyEvent, *new: AnyEvent) -> Events:
    """The events with `old` replaced by `new`, in its place."""
    index = next(i for i, event in enumerate(events) if event is old)
    return [*events[:index], *new, *events[index + 1 :]]


def moved(events: Events, event: AnyEvent, behind: AnyEvent) -> Events:
    rest = without(events, event)
    index = next(i for i, other in enumerate(rest) if other is behind)
    return [*rest[: index + 1], replace(event, time=behind.time), *rest[index + 1 :]]


def everywhere(
    events: Events, segment: FinalSegment, change: Callable[[FinalSegment], FinalSegment]
) -> Events:
    """The same change to a segment at every site that has it."""
    return [
        change(event)
        if type(event) is FinalSegment and event.chain == segment.chain and same_place(event, segment)
        else event
        for event in events
    ]


def same_place(one: FinalSegment, other: FinalSegment) -> bool:
    return (one.stage, one.partition, one.segment) == (other.stage, other.partition, other.segment)


def role(events: Events, wanted: str) -> SiteName | None:
    return next((site.site for site in each(events, FinalSite) if site.role == wanted), None)


def journal(events: Events, wanted: str = "active") -> list[FinalSegment]:
    site = role(events, wanted)
    return [segment for segment in each(events, FinalSegment) if segment.site == site]


def rows(events: Events, wanted: str = "active") -> list[FinalInstruction]:
    site = role(events, wanted)
    return [row for row in each(events, FinalInstruction) if row.site == site]


def last_of_place(events: Events) -> list[FinalSegment]:
    return list({(s.stage, s.partition): s for s in journal(events)}.values())


def accepted(events: Events, *classes: str) -> list[EmissionAttempted]:
    """What was accepted, on channels of the given classes (all but R3 unless told)."""
    wanted = classes or ("R0", "R1", "R2")
    channels = {c.channel for c in each(events, ChannelDeclared) if c.receiver in wanted}
    return [a for a in each(events, EmissionAttempted) if a.answer == "accepted" and a.channel in channels]


def same_number(events: Events, attempt: EmissionAttempted) -> Iterator[EmissionAttempted]:
    for other in each(events, EmissionAttempted):
        if stream(other) == stream(attempt) and other.number == attempt.number:
            yield other


def stream(a: EmissionAttempted | Released) -> tuple[str, int, int]:
    return (a.channel, a.partition, a.target_partition)


def sender(a: EmissionAttempted | Released | ChannelClaimed) -> tuple[str, int, int]:
    return (a.site, a.epoch, a.incarnation)


def flipped(digest: str) -> str:
    return f"{int(digest[0], 16) ^ 1:x}{digest[1:]}"


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
    if not any(
        r.id in told and r.partition == last.partition and (r.producer, r.serial) in held
        for r in rows(events)
    ):
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
        replace(e, digest=flipped(e.digest)) if type(e) is FinalInstruction and e.id == row.id else e
        for e in events
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
def dumb_receiver_gets_a_number_twice_and_nobody_lists_it(
    rng: random.Random, events: Events
) -> Events | None:
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
    second = next(
        (a for a in accepted(events) if stream(a) == stream(first) and a.number == first.number + 1), None
    )
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
    gone = [
        a
        for a in each(events, EmissionAttempted)
        if stream(a) == stream(last) and first <= a.number < last.number
    ]
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


# S6 one sender.


def _older_claim(events: Events, attempt: EmissionAttempted) -> EmissionAttempted | None:
    """An accepted attempt on the same channel by an older sender."""
    older = [
        a
        for a in accepted(events, "R2")
        if a.channel == attempt.channel and (a.epoch, a.incarnation) < (attempt.epoch, attempt.incarnation)
    ]
    return older[-1] if older else None


@breaks("S6", "S8")
def older_sender_comes_through(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events, "R2"))
    older = None if a is None else _older_claim(events, a)
    if a is None or older is None:
        return None
    return put(events, a, replace(a, epoch=older.epoch, incarnation=older.incarnation, site=older.site))


@breaks("S6", "S3", "S4", "S7")
def refused_zombie_is_accepted(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, [a for a in each(events, EmissionAttempted) if a.answer == "older-epoch"])
    return None if a is None else put(events, a, replace(a, answer="accepted"))


@breaks("S6", "S7", "S8")
def incarnation_falls(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events, "R2"))
    return (
        None if a is None else put(events, a, replace(a, incarnation=type(a.incarnation)(a.incarnation - 1)))
    )


@breaks("S6")
def repeat_has_other_bytes(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, [a for a in each(events, EmissionAttempted) if a.answer == "repeat"])
    return None if a is None else put(events, a, replace(a, digest=flipped(a.digest)))


@breaks("S6")
def refused_early_number_had_other_bytes(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, [a for a in each(events, EmissionAttempted) if a.answer == "gap"])
    return None if a is None else put(events, a, replace(a, digest=flipped(a.digest)))


# S7 epoch discipline.


@breaks("S7")
def sender_never_claimed(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events, "R2"))
    if a is None:
        return None
    return without(
        events,
        *(c for c in each(events, ChannelClaimed) if c.channel == a.channel and sender(c) == sender(a)),
    )


@breaks("S7", "S6", "L4")
def claim_is_refused_and_it_sends(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events, "R2"))
    if a is None:
        return None
    return [
        replace(c, answer="older-epoch")
        if type(c) is ChannelClaimed and c.channel == a.channel and sender(c) == sender(a)
        else c
        for c in events
    ]


@breaks("S7", "S8", "S18")
def epoch_is_claimed_before_it_is_opened(rng: random.Random, events: Events) -> Events | None:
    claim = one(rng, each(events, ChannelClaimed))
    if claim is None:
        return None
    opened = next(e for e in each(events, EpochOpened) if e.epoch == claim.epoch)
    return moved(events, opened, [c for c in each(events, ChannelClaimed) if c.epoch == claim.epoch][-1])


@breaks("S7", "S8")
def epoch_is_opened_by_two_sites(rng: random.Random, events: Events) -> Events | None:
    opened = one(rng, each(events, EpochOpened))
    if opened is None:
        return None
    other = SiteName("west" if opened.site == "east" else "east")
    return put(events, opened, opened, replace(opened, site=other))


@breaks("S7")
def claim_is_made_by_the_wrong_site(rng: random.Random, events: Events) -> Events | None:
    claim = one(rng, each(events, ChannelClaimed))
    if claim is None:
        return None
    other = SiteName("west" if claim.site == "east" else "east")
    return put(events, claim, claim, replace(claim, site=other))


@breaks("S7", "S9", "S15", "S16")
def sending_epoch_is_not_in_the_final_lineage(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, accepted(events, "R2"))
    if a is None:
        return None
    return [
        replace(e, epochs=tuple(epoch for epoch in e.epochs if epoch != a.epoch) or (type(a.epoch)(1),))
        if type(e) is FinalSite
        else e
        for e in events
    ]


@breaks("S7", "S6")
def claims_fall(rng: random.Random, events: Events) -> Events | None:
    claim = one(rng, each(events, ChannelClaimed))
    if claim is None:
        return None
    later = [c for c in each(events, ChannelClaimed) if c.channel == claim.channel and c.time > claim.time]
    return put(events, later[-1], later[-1], replace(claim, time=later[-1].time)) if later else None


# S8 durable before sent.


def _covering(events: Events, attempt: EmissionAttempted) -> list[Released]:
    return [
        r
        for r in each(events, Released)
        if stream(r) == stream(attempt) and sender(r) == sender(attempt) and r.through >= attempt.number
    ]


def _sent_by_gate(rng: random.Random, events: Events) -> tuple[EmissionAttempted, list[Released]] | None:
    a = one(rng, each(events, EmissionAttempted))
    if a is None:
        return None
    releases = _covering(events, a)
    return (a, releases) if all(r.by == "gate" for r in releases) else None


def _with_releases(rng: random.Random, events: Events, **change: object) -> Events | None:
    """All releases that cover some number, changed alike."""
    found = _sent_by_gate(rng, events)
    if found is None:
        return None
    covering = {id(r) for r in found[1]}
    return [replace(e, **change) if id(e) in covering else e for e in events]


@breaks("S8")
def nothing_was_released(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, each(events, EmissionAttempted))
    return None if a is None else without(events, *_covering(events, a))


@breaks("S8")
def other_site_had_not_flushed(rng: random.Random, events: Events) -> Events | None:
    return _with_releases(rng, events, other_lsn_flushed=Lsn(1))


@breaks("S8")
def other_site_was_on_another_timeline(rng: random.Random, events: Events) -> Events | None:
    return _with_releases(rng, events, other_timeline=Timeline(77))


@breaks("S8")
def other_site_was_of_another_epoch(rng: random.Random, events: Events) -> Events | None:
    return _with_releases(rng, events, other_epoch=77)


@breaks("S8")
def other_site_was_promoted(rng: random.Random, events: Events) -> Events | None:
    return _with_releases(rng, events, other_in_recovery=False)


@breaks("S8")
def gate_was_asked_for_too_little(rng: random.Random, events: Events) -> Events | None:
    found = _sent_by_gate(rng, events)
    if found is None:
        return None
    a, releases = found
    known = any(
        s.lsn
        and s.epoch == a.epoch
        and s.partition == a.partition
        and (e.channel, e.number) == (a.channel, a.number)
        for s in journal(events)
        for e in s.emissions
    )
    if not known:
        return None
    covering = {id(r) for r in releases}
    return [replace(e, lsn_wanted=Lsn(1)) if id(e) in covering and type(e) is Released else e for e in events]


@breaks("S8", "S18")
def release_comes_after_the_sending(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, each(events, EmissionAttempted))
    releases = [] if a is None else _covering(events, a)
    if a is None or len(releases) != 1:
        return None
    return moved(events, releases[0], a)


@breaks("S8")
def another_sender_had_released_it(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, each(events, EmissionAttempted))
    if a is None:
        return None
    covering = {id(r) for r in _covering(events, a)}
    return [
        replace(e, incarnation=type(e.incarnation)(e.incarnation + 100))
        if id(e) in covering and type(e) is Released
        else e
        for e in events
    ]


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
    second = next(
        (s for s in journal(events) if same_place(s, replace(first, segment=SegmentNumber(2)))), None
    )
    if second is None:
        return None
    changed = put(events, first, replace(second, segment=SegmentNumber(1)))
    return put(changed, second, replace(first, segment=SegmentNumber(2)))


@breaks("S10", "S9", "S12", "S1", "S2", "S5", "S17", "S15")
def segment_was_deleted(rng: random.Random, events: Events) -> Events | None:
    last = {id(s) for s in last_of_place(events)}
    s = one(rng, [s for s in journal(events) if id(s) not in last])
    return (
        None if s is None else without(events, *(o for o in each(events, FinalSegment) if same_place(o, s)))
    )


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
    return segment_was_deleted(rng, events)


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


# S13 mirror agreement.


@breaks("S13")
def copy_differs(rng: random.Random, events: Events) -> Events | None:
    c = one(rng, each(events, MirrorCopy))
    return None if c is None else put(events, c, replace(c, digest=flipped(c.digest)))


@breaks("S13")
def copy_is_left_out(rng: random.Random, events: Events) -> Events | None:
    c = one(rng, each(events, MirrorCopy)[:-1])
    return None if c is None else without(events, c)


@breaks("S13")
def copy_is_made_twice(rng: random.Random, events: Events) -> Events | None:
    c = one(rng, each(events, MirrorCopy))
    return None if c is None else [*events, replace(c, offset=Offset(c.offset + 1))]


@breaks("S13")
def copies_change_places(rng: random.Random, events: Events) -> Events | None:
    copies = each(events, MirrorCopy)
    index = rng.randrange(len(copies) - 1)
    first, second = copies[index], copies[index + 1]
    return put(
        put(events, first, replace(first, offset=second.offset)), second, replace(second, offset=first.offset)
    )


@breaks("S13")
def copy_has_no_source(rng: random.Random, events: Events) -> Events | None:
    c = one(rng, each(events, MirrorCopy))
    if c is None:
        return None
    return without(events, *(s for s in each(events, MirrorSource) if s.offset == c.source_offset))


@breaks("S13")
def two_copies_claim_one_coordinate(rng: random.Random, events: Events) -> Events | None:
    copies = each(events, MirrorCopy)
    index = rng.randrange(1, len(copies))
    return put(events, copies[index], replace(copies[index], source_offset=copies[index - 1].source_offset))


# S14 honest answers.


@breaks("S14")
def answer_names_another_serial(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, each(events, SubmitAccepted))
    return None if a is None else put(events, a, replace(a, serial=Serial(999)))


@breaks("S14")
def retry_gets_another_serial(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, [a for a in each(events, SubmitAccepted) if a.serial])
    if a is None or a.serial is None:
        return None
    return put(events, a, a, replace(a, serial=Serial(a.serial + 1)))


@breaks("S14", "S2")
def success_is_revoked(rng: random.Random, events: Events) -> Events | None:
    a = one(rng, each(events, SubmitAccepted))
    return None if a is None else put(events, a, a, SubmitFailed(id=a.id, time=a.time))


@breaks("S14", "S2", "S3", "S9", "S17", "S19")
def rows_change_serials(rng: random.Random, events: Events) -> Events | None:
    row = one(
        rng, [r for r in rows(events) if r.id in {a.id for a in each(events, SubmitAccepted) if a.serial}]
    )
    if row is None:
        return None
    other = next(
        (
            r
            for r in rows(events)
            if (r.producer, r.partition, r.serial) == (row.producer, row.partition, row.serial + 1)
        ),
        None,
    )
    if other is None:
        return None
    turned = {row.id: other, other.id: row}
    return [
        replace(e, serial=turned[e.id].serial) if type(e) is FinalInstruction and e.id in turned else e
        for e in events
    ]


# S15 a fence is final.


def _behind_a_cut(events: Events) -> list[tuple[EpochOpened, FinalSegment]]:
    return [
        (opened, s)
        for opened in each(events, EpochOpened)[1:]
        for s in journal(events)
        if s.epoch == opened.epoch
    ]


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
    return (
        put(events, opened, replace(opened, cuts=(*cuts, replace(own[0], segment=s.segment))))
        if own
        else None
    )


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
    return (
        None if s is None else everywhere(events, s, lambda s: replace(s, epoch=type(s.epoch)(s.epoch + 1)))
    )


# S17 conservation.


@breaks("S17")
def row_is_never_taken(rng: random.Random, events: Events) -> Events | None:
    row = one(rng, rows(events))
    if row is None:
        return None
    last = max(r.serial for r in rows(events) if (r.producer, r.partition) == (row.producer, row.partition))
    new = [
        replace(r, id="u-new", serial=Serial(last + 1))
        for r in each(events, FinalInstruction)
        if r.id == row.id
    ]
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
    return (
        None
        if last is None
        else without(events, *(s for s in each(events, FinalSegment) if same_place(s, last)))
    )


# S18 no silent exposure.


@breaks("S18")
def operator_never_said_so(rng: random.Random, events: Events) -> Events | None:
    m = one(rng, [m for m in each(events, ModeChanged) if m.mode == "exposed"])
    return None if m is None else put(events, m, replace(m, operator=False))


@breaks("S18")
def handover_opens_an_exposed_epoch(rng: random.Random, events: Events) -> Events | None:
    o = one(rng, [o for o in each(events, EpochOpened) if o.mode == "gated"])
    return None if o is None else put(events, o, replace(o, mode="exposed"))


@breaks("S18", "S8")
def released_by_exposure_in_a_gated_epoch(rng: random.Random, events: Events) -> Events | None:
    r = one(rng, [r for r in each(events, Released) if r.by == "gate"])
    if r is None:
        return None
    opened = next(e for e in each(events, EpochOpened) if e.epoch == r.epoch)
    exposed = opened.mode == "exposed" or any(m.epoch == r.epoch for m in each(events, ModeChanged))
    return None if exposed else put(events, r, replace(r, by="exposure"))


@breaks("S18", "S8")
def exposure_was_never_recorded(rng: random.Random, events: Events) -> Events | None:
    changed = [m for m in each(events, ModeChanged) if m.mode == "exposed"]
    exposed = [
        m.epoch
        for m in changed
        if any(r.by == "exposure" and r.epoch == m.epoch for r in each(events, Released))
    ]
    epoch = one(rng, exposed)
    if epoch is None or any(o.mode == "exposed" and o.epoch == epoch for o in each(events, EpochOpened)):
        return None
    return without(events, *(m for m in changed if m.epoch == epoch))


@breaks("S18")
def gate_vouches_for_what_was_never_sent(rng: random.Random, events: Events) -> Events | None:
    r = one(rng, [r for r in each(events, Released) if r.by == "gate"])
    if r is None:
        return None
    sent = Lsn(r.other_lsn_flushed - 1)
    away = ReplicationChanged(site=r.site, in_force=False, lsn_sent=sent, time=r.time)
    back = ReplicationChanged(site=r.site, in_force=True, time=r.time)
    return put(events, r, away, r, back)


@breaks("S18")
def gate_opens_while_nobody_knows_what_was_sent(rng: random.Random, events: Events) -> Events | None:
    r = one(rng, [r for r in each(events, Released) if r.by == "gate"])
    if r is None:
        return None
    away = ReplicationChanged(site=r.site, in_force=False, time=r.time)
    back = ReplicationChanged(site=r.site, in_force=True, time=r.time)
    return put(events, r, away, r, back)


# S19 real time.


@breaks("S19")
def submission_came_after_a_later_serial_was_acknowledged(
    rng: random.Random, events: Events
) -> Events | None:
    stored = {row.id: row for row in rows(events)}
    told = [a for a in each(events, SubmitAccepted) if a.id in stored]
    late = one(rng, told)
    if late is None:
        return None
    row = stored[late.id]
    earlier = [
        r
        for r in stored.values()
        if (r.producer, r.partition) == (row.producer, row.partition) and r.serial < row.serial
    ]
    victim = one(rng, earlier)
    if victim is None:
        return None
    kinds = (SubmitInvoked, SubmitAccepted, SubmitUnknown, SubmitFailed)
    moving = [e for e in events if isinstance(e, kinds) and e.id == victim.id]
    index = next(i for i, e in enumerate(events) if e is late)
    behind = [e for e in events[index:] if e not in moving]
    return [*without(events[:index], *moving), behind[0], *moving, *behind[1:]]


@breaks("S19", "S1", "S2", "S14", "S17")
def serials_were_given_against_time(rng: random.Random, events: Events) -> Events | None:
    stored = {row.id: row for row in rows(events)}
    told: list[str] = []
    pairs: list[tuple[str, str]] = []
    seen: set[str] = set()
    for e in events:
        if type(e) is SubmitInvoked and e.id in stored and e.id not in seen:
            seen.add(e.id)
            row = stored[e.id]
            pairs += [
                (a, e.id)
                for a in told
                if (stored[a].producer, stored[a].partition) == (row.producer, row.partition)
            ]
        elif type(e) is SubmitAccepted and e.id in stored:
            told.append(e.id)
    pair = one(rng, pairs)
    if pair is None:
        return None
    serial = {pair[0]: stored[pair[1]].serial, pair[1]: stored[pair[0]].serial}
    return [
        replace(e, serial=serial[e.id])
        if type(e) is FinalInstruction and e.id in serial
        else replace(e, serial=None)
        if type(e) is SubmitAccepted and e.id in serial
        else e
        for e in events
    ]


# Liveness.


@breaks("L1")
def takeover_takes_too_long(rng: random.Random, events: Events) -> Events | None:
    began = one(rng, [b for b in each(events, LimitBegan) if b.rule == "L1"])
    return None if began is None else put(events, began, replace(began, limit=0))


@breaks("L1")
def takeover_never_ends(rng: random.Random, events: Events) -> Events | None:
    began = LimitBegan(rule="L1", what="takeover x", limit=1, time=events[-1].time)
    return [*events, began]


@breaks("L2")
def drain_never_ends(rng: random.Random, events: Events) -> Events | None:
    return without(events, *(r for r in each(events, LimitReached) if r.rule == "L2"))


@breaks("L2")
def drain_takes_too_long(rng: random.Random, events: Events) -> Events | None:
    end = next(r for r in each(events, LimitReached) if r.rule == "L2")
    return put(events, end, replace(end, time=end.time + 2_000_000))


@breaks("L3")
def transaction_hangs(rng: random.Random, events: Events) -> Events | None:
    return _measured_beyond(events, "L3")


@breaks("L4")
def fenced_process_goes_on(rng: random.Random, events: Events) -> Events | None:
    end = one(rng, [e for e in each(events, ProcessEnded) if e.reason == "fenced"])
    return None if end is None else without(events, end)


@breaks("L4")
def fenced_process_ends_late(rng: random.Random, events: Events) -> Events | None:
    end = one(rng, [e for e in each(events, ProcessEnded) if e.reason == "fenced"])
    return None if end is None else put(events, end, replace(end, time=end.time + 100))


@breaks("L4")
def fenced_process_says_that_all_is_well(rng: random.Random, events: Events) -> Events | None:
    end = one(rng, [e for e in each(events, ProcessEnded) if e.reason == "fenced"])
    return None if end is None else put(events, end, replace(end, exit_code=0))


@breaks("L5")
def handover_pauses_too_long(rng: random.Random, events: Events) -> Events | None:
    end = one(rng, [r for r in each(events, LimitReached) if r.rule == "L5"])
    return None if end is None else put(events, end, replace(end, time=end.time + 2_000_000))


@breaks("L6")
def waiting_process_is_busy(rng: random.Random, events: Events) -> Events | None:
    return _measured_beyond(events, "L6")


@breaks("L7")
def wait_has_no_name(rng: random.Random, events: Events) -> Events | None:
    return _measured_beyond(events, "L7")


def _measured_beyond(events: Events, rule: str) -> Events:
    return [replace(e, value=e.limit + 1) if type(e) is Measured and e.rule == rule else e for e in events]


# Could it have failed?


@breaks("N2")
def fault_did_not_bite(rng: random.Random, events: Events) -> Events | None:
    f = one(rng, each(events, FaultBegan))
    return None if f is None else put(events, f, replace(f, bit=False))


@breaks("N2")
def fault_shows_no_evidence(rng: random.Random, events: Events) -> Events | None:
    f = one(rng, each(events, FaultBegan))
    return None if f is None else put(events, f, replace(f, evidence=""))


@breaks("N2")
def fault_was_not_injected(rng: random.Random, events: Events) -> Events | None:
    f = one(rng, each(events, FaultBegan))
    return None if f is None else without(events, f)


@breaks("N3")
def fault_came_before_all_work(rng: random.Random, events: Events) -> Events | None:
    f = one(rng, each(events, FaultBegan))
    return None if f is None else put(events, f, replace(f, time=0))


@breaks("N3")
def fault_came_after_all_work(rng: random.Random, events: Events) -> Events | None:
    f = one(rng, each(events, FaultBegan))
    return None if f is None else put(events, f, replace(f, time=events[-1].time + 1))


@breaks("N4")
def no_outcome_was_unknown(rng: random.Random, events: Events) -> Events | None:
    unknown = each(events, SubmitUnknown)
    return without(events, *unknown) if unknown else None


@breaks("N5")
def nobody_read_the_active_site(rng: random.Random, events: Events) -> Events | None:
    active = next(site for site in each(events, FinalSite) if site.role == "active")
    return without(events, active)


@breaks("N5")
def last_state_was_not_replayed(rng: random.Random, events: Events) -> Events | None:
    return without(events, *(s for s in each(events, FinalState) if s.source == "replay"))


@breaks("N5")
def chain_was_not_read(rng: random.Random, events: Events) -> Events | None:
    bare = [
        replace(e, chain="", content="", previous="")
        if type(e) is FinalSegment
        else replace(e, cuts=tuple(replace(cut, chain="") for cut in e.cuts))
        if type(e) is EpochOpened
        else e
        for e in events
    ]
    return bare if not each(events, DivergentSegment) else None


@breaks("N7")
def promised_limit_was_not_measured(rng: random.Random, events: Events) -> Events | None:
    rule = rng.choice(["L3", "L6", "L7"])
    return without(events, *(m for m in each(events, Measured) if m.rule == rule))


def _serials(run: Run) -> range:
    return range(run.first_serial, run.first_serial + run.count)
