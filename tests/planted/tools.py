"""What planting needs: a list of plants, and ways to find and change events."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from zerotail.core.identity import (
    SiteName,
)
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
    EmissionAttempted,
    FinalInstruction,
    FinalSegment,
    FinalSite,
    Released,
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


def everywhere(events: Events, segment: FinalSegment, change: Callable[[FinalSegment], FinalSegment]) -> Events:
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
    return f"{int(digest[:1] or '0', 16) ^ 1:x}{digest[1:]}"
