"""What became of a step: done, declined, nobody knows, or no answer; whoever acts must hear which."""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.errors import Refused as NotAllowed
from zerotail.errors import Unfinished
from zerotail.ports import Done, Indefinite, Refused


@dataclass(frozen=True, slots=True)
class StepNumbers:
    """The error numbers of an act's steps, and what to type next."""

    declined: str
    unknown: str
    unanswered: str
    tries: tuple[str, ...]


def require_done(answer: object, what: str, numbers: StepNumbers) -> None:
    """Return when the step was done; else the kind of the error says whether something may have changed."""
    match answer:
        case Done():
            return
        case Refused():
            raise NotAllowed(
                f"could not {what}: {answer.reason.rstrip('.')}.", code=numbers.declined, tries=numbers.tries
            )
        case Indefinite():
            sentence = f"nobody knows whether it was possible to {what}."
            raise Unfinished(sentence, code=numbers.unknown, tries=numbers.tries)
        case _:
            raise Unfinished(f"could not {what}: no answer.", code=numbers.unanswered, tries=numbers.tries)
