"""Ways to be late (L1 … L7)."""

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
    LimitBegan,
    LimitReached,
    Measured,
    ProcessEnded,
)

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
