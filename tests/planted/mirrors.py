"""Ways to copy wrongly (S13)."""

from __future__ import annotations

import random

from msgspec.structs import replace

from planted.tools import (
    Events,
    breaks,
    each,
    flipped,
    one,
    put,
    without,
)
from zerotail.core.identity import (
    Offset,
)
from zerotail.drill.history import (
    MirrorCopy,
    MirrorSource,
)

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
    return put(put(events, first, replace(first, offset=second.offset)), second, replace(second, offset=first.offset))


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
