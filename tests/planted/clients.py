"""Ways to lie to clients (S14, S19)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    breaks,
    each,
    one,
    put,
    rows,
    without,
)
from zerotail.core.identity import (
    Serial,
)
from zerotail.drill.history import (
    FinalInstruction,
    SubmitAccepted,
    SubmitFailed,
    SubmitInvoked,
    SubmitUnknown,
)

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
    row = one(rng, [r for r in rows(events) if r.id in {a.id for a in each(events, SubmitAccepted) if a.serial}])
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
        replace(e, serial=turned[e.id].serial) if type(e) is FinalInstruction and e.id in turned else e for e in events
    ]


# S19 real time.


@breaks("S19")
def submission_came_after_a_later_serial_was_acknowledged(rng: random.Random, events: Events) -> Events | None:
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
                (a, e.id) for a in told if (stored[a].producer, stored[a].partition) == (row.producer, row.partition)
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
