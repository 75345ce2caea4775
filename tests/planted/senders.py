"""Ways to let the wrong one send (S6, S7)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    accepted,
    breaks,
    each,
    flipped,
    moved,
    one,
    put,
    sender,
    without,
)
from zerotail.core.identity import (
    SiteName,
)
from zerotail.drill.history import (
    ChannelClaimed,
    EmissionAttempted,
    EpochOpened,
    FinalSite,
)

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
    return None if a is None else put(events, a, replace(a, incarnation=type(a.incarnation)(a.incarnation - 1)))


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
