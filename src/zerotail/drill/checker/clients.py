"""What clients were told stays true, and in the order of time (S14, S19)."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.drill.checker.facts import Facts, Source
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import SubmitAccepted, SubmitFailed, SubmitInvoked


def honest_answers(facts: Facts) -> Iterator[Finding]:
    """S14: one id, one serial, in every answer and in its row; a yes is never followed by a no."""
    told: dict[str, SubmitAccepted] = {}
    for event in facts.submissions:
        if type(event) is SubmitAccepted:
            first = told.setdefault(event.id, event)
            if first.serial is None and event.serial is not None:
                told[event.id] = event
            elif event.serial is not None and event.serial != first.serial:
                says = f"submission {event.id} was told serial {first.serial} and then {event.serial}"
                yield Finding(says, (first, event))
        elif type(event) is SubmitFailed and event.id in told:
            yield Finding(f"submission {event.id} was acknowledged and then refused", (told[event.id], event))
    row_of = facts.row_of
    for answer in told.values():
        row = row_of.get(answer.id)
        if row is not None and answer.serial is not None and row.serial != answer.serial:
            says = f"submission {answer.id} was told serial {answer.serial} and has {row.serial}"
            yield Finding(says, (answer, row))


def real_time(facts: Facts) -> Iterator[Finding]:
    """S19: what was acknowledged before another was submitted has the lower serial.

    The events are in the order of time already, so it is enough to know, whenever something is submitted for
    the first time, the highest serial that had been acknowledged by then.
    """
    row_of = facts.row_of
    submitted: set[str] = set()
    highest: dict[Source, tuple[int, SubmitAccepted]] = {}
    for event in facts.submissions:
        if type(event) is SubmitInvoked:
            row = row_of.get(event.id)
            if row is not None and event.id not in submitted and event.serial is None:
                serial, acknowledged = highest.get((row.producer, row.partition), (0, None))
                if acknowledged is not None and row.serial < serial:
                    says = f"{event.id} stands before {acknowledged.id}, acknowledged before it was submitted"
                    yield Finding(says, (acknowledged, event))
            submitted.add(event.id)
        elif type(event) is SubmitAccepted:
            row = row_of.get(event.id)
            if row is not None and row.serial > highest.get((row.producer, row.partition), (0, None))[0]:
                highest[row.producer, row.partition] = (row.serial, event)
