"""Everything that happened in a drill: its page shows it, and its file keeps it for programs.

Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from zerotail.drill.arrivals import Arrival
from zerotail.drill.drawing import STEP_SECONDS, Break, Message, breaks_in, per_step
from zerotail.drill.rehearsal import CHANNEL, Event, Rehearsal, TimedStep
from zerotail.lab.receiver.protocol import Attempt, MessageAttempt, Verdict


@dataclass(frozen=True, slots=True)
class Tenth:
    """What arrived from one site in a tenth of a second."""

    at: float
    site: str
    count: int


@dataclass(frozen=True, slots=True)
class Strip:
    """The order around one change of the sending site, as runs: site, number of the producer, how many in a row."""

    partition: int
    first_number: int
    changed_at: int | None
    """The first number that the other site sent; None where one site sent all."""
    runs: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One drill."""

    zero: float
    """The moment from which its page counts seconds."""
    origin: str
    """What that moment is."""
    events: tuple[Event, ...]
    steps: tuple[TimedStep, ...]
    messages: tuple[Message, ...]
    producers: dict[str, int]
    ran_on: dict[str, str]
    configuration: str


def record_of(
    rehearsal: Rehearsal, arrivals: Sequence[Arrival], attempts: Sequence[Attempt], ran_on: Mapping[str, str]
) -> Record:
    """What a rehearsal has to tell; `ran_on` names the machine and the versions."""
    zero, origin = _zero(rehearsal)
    return Record(
        zero,
        origin,
        tuple(rehearsal.events),
        tuple(rehearsal.steps),
        tuple(_messages(arrivals, attempts)),
        dict(rehearsal.producers),
        dict(ran_on),
        rehearsal.config(rehearsal.active).read_text(),
    )


def told(record: Record) -> dict[str, Any]:
    """As a file keeps it: messages are counted, not listed."""
    start = min((one.at for one in record.messages), default=record.zero)
    counts = sorted(per_step(record.messages, start).items(), key=lambda one: one[0][::-1])
    kept: dict[str, Any] = msgspec.to_builtins(replace(record, messages=()))
    del kept["messages"]
    received = [Tenth(round(start + place * STEP_SECONDS, 3), site, count) for (site, place), count in counts]
    order = [_strip(one) for one in breaks_in(record.messages)]
    return kept | {"received": msgspec.to_builtins(received), "order": msgspec.to_builtins(order)}


def _zero(rehearsal: Rehearsal) -> tuple[float, str]:
    """The moment from which seconds count, and what it is called."""
    if rehearsal.faults:
        return rehearsal.faults[0].at, "the first fault"
    return (
        (rehearsal.asked_at, "the command") if rehearsal.asked_at is not None else (rehearsal.scene_at, "the beginning")
    )


def _messages(arrivals: Sequence[Arrival], attempts: Sequence[Attempt]) -> list[Message]:
    sites: dict[tuple[int, int], str] = {}
    for one in attempts:
        if isinstance(one, MessageAttempt) and one.channel == CHANNEL and one.verdict is Verdict.ACCEPTED:
            sites.setdefault((one.partition, one.number), one.site)
    return [
        Message(one.arrived_at, sites[one.partition, one.number], one.partition, one.number, one.producer)
        for one in arrivals
    ]


def _strip(shown: Break) -> Strip:
    first, place = shown.near[0], shown.place
    return Strip(first.partition, first.number, None if place is None else shown.near[place].number, tuple(shown.runs))
