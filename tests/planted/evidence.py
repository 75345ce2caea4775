"""Ways to prove nothing (N2 … N7)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    breaks,
    each,
    one,
    put,
    without,
)
from zerotail.drill.history import (
    DivergentSegment,
    EpochOpened,
    FaultBegan,
    FinalSegment,
    FinalSite,
    FinalState,
    Measured,
    SubmitUnknown,
)

# Could it have failed?.


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
