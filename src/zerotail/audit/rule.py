"""What a rule is.

A rule is a value. Its predicate is a small pure function from one subject to what is wrong with it; everything else is
words, from which a finding on the screen and the rule's page in the manual are made alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from zerotail.audit.facts import Subject

F = TypeVar("F", bound=Subject)

Weight = Literal["loss", "risk"]
"""`loss`: as it is set, one ordinary fault loses, repeats or reorders acknowledged data. `risk`: it takes a second
fault, an older client or a mistake, or what saves the data will not be there when it is needed.
"""


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong: the fact as it was seen, and what the repair line names beside the subject's own words."""

    seen: str
    words: Mapping[str, str] = field(default_factory=dict)


Predicate = Callable[[F], Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class Rule(Generic[F]):
    """One thing that must hold of every subject of a kind."""

    id: str
    title: str
    """What holds when the rule is kept."""
    weight: Weight
    kind: type[F]
    looks_at: str
    """Settings and facts, by their names."""
    violations: Predicate[F]
    why: str
    """How data is lost, as a scenario in a sentence."""
    default: str
    """The default that bites."""
    repair: str
    """The line to type, or to write into a file; words in braces are the subject's."""


AnyRule = Rule[Any]


def repair_line(rule: AnyRule, words: Mapping[str, str]) -> str:
    """The repair with its words filled in; one that is not given stands there in capitals."""
    return rule.repair.format_map(_Words(words))


class _Words(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return name.upper()
