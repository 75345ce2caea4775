"""Ways to send too early (S8, S18)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    breaks,
    each,
    journal,
    moved,
    one,
    put,
    sender,
    stream,
    without,
)
from zerotail.core.identity import (
    Lsn,
    Timeline,
)
from zerotail.drill.history import (
    EmissionAttempted,
    EpochOpened,
    ModeChanged,
    Released,
    ReplicationChanged,
)

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
        s.lsn and s.epoch == a.epoch and s.partition == a.partition and (e.channel, e.number) == (a.channel, a.number)
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
        m.epoch for m in changed if any(r.by == "exposure" and r.epoch == m.epoch for r in each(events, Released))
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
