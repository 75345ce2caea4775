"""What has to happen in time, judged by the limits that the run itself states (L1 … L7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from zerotail.drill.checker.facts import Facts
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    EmissionAttempted,
    LimitBegan,
    LimitReached,
    Measured,
    ProcessEnded,
    ProcessStarted,
)

LIMITED = ("L1", "L2", "L3", "L5", "L6", "L7")
"""The rules whose limits stand in the history; L4 has its limit in what is expected of the run."""


def within_limit(rule: str) -> Callable[[Facts], Iterator[Finding]]:
    """The rule `rule` of those that are stated as limits: begun is reached in time, measured is within."""

    def judge(facts: Facts) -> Iterator[Finding]:
        for event in facts.limits:
            if event.rule != rule:
                continue
            if type(event) is Measured and event.value > event.limit:
                yield Finding(f"{event.what}: {event.value} exceeds {event.limit}", (event,))
            elif type(event) is LimitBegan:
                yield from _not_reached(facts, event)

    return judge


def _not_reached(facts: Facts, began: LimitBegan) -> Iterator[Finding]:
    ends: list[AnyEvent] = [
        event
        for event in facts.limits
        if type(event) is LimitReached
        and (event.rule, event.what) == (began.rule, began.what)
        and event.time >= began.time
    ]
    if began.rule == "L1":
        ends += _first_emission_of_a_new_epoch(facts, began)
    end = min(ends, key=lambda event: event.time, default=None)
    if end is None:
        yield Finding(f"{began.what} began and was never reached", (began,))
    elif end.time - began.time > began.limit:
        says = f"{began.what} took {end.time - began.time}, and {began.limit} was the limit"
        yield Finding(says, (began, end))


def _first_emission_of_a_new_epoch(facts: Facts, began: LimitBegan) -> list[EmissionAttempted]:
    opened = {event.epoch for event in facts.opened if event.time >= began.time}
    first = next((a for a in facts.attempts if a.epoch in opened and a.answer == "accepted"), None)
    return [] if first is None else [first]


def fenced_process_ends(facts: Facts, limit: int) -> Iterator[Finding]:
    """L4: a sender that was refused as older ends by itself, with an exit code other than 0."""
    process_of: dict[tuple[str, int, int], ProcessStarted] = {}
    ended: dict[str, ProcessEnded] = {}
    for event in facts.processes:
        if type(event) is ProcessEnded:
            ended.setdefault(event.process, event)
        elif type(event) is ProcessStarted and event.epoch:
            process_of.setdefault((event.site, event.epoch, event.incarnation), event)
    judged: set[str] = set()
    for refusal in facts.sending:
        if not isinstance(refusal, EmissionAttempted | ChannelClaimed):
            continue
        started = process_of.get((refusal.site, refusal.epoch, refusal.incarnation))
        if refusal.answer != "older-epoch" or started is None or started.process in judged:
            continue
        judged.add(started.process)
        end = ended.get(started.process)
        if end is None:
            yield Finding(f"{started.process} was refused as older and goes on", (refusal,))
        elif end.time - refusal.time > limit:
            yield Finding(f"{started.process} was refused as older and ended too late", (refusal, end))
        elif end.exit_code == 0:
            yield Finding(f"{started.process} was refused as older and ended as if well", (refusal, end))
