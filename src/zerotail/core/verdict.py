"""A verdict on a run: passed, failed or undecided, with what proves it.

A run that broke no rule has passed only if it was able to break one: a fault that did not bite, or a site
that nobody read, leaves the verdict undecided. A broken rule is broken whatever else is missing: failed wins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Outcome(Enum):
    """The three values. Undecided is not a pass."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Witness:
    """An event that helps to prove a violation: where it stands in the history, and what it says."""

    time: int
    recorder: str
    sequence: int
    says: str


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule, with its smallest witness, and how often it is broken."""

    rule: str
    says: str
    witness: tuple[Witness, ...]
    count: int = 1


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason why a run proves too little."""

    rule: str
    says: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run has shown. `counted` are figures of the run by name; `notes` change nothing."""

    violations: tuple[Violation, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    counted: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Failed if a rule is broken; else undecided if anything leaves it open; else passed."""
        if self.violations:
            return Outcome.FAILED
        return Outcome.UNDECIDED if self.doubts else Outcome.PASSED

    @property
    def broken_rules(self) -> tuple[str, ...]:
        """The numbers of the broken rules, in the order of the rule list."""
        return tuple(violation.rule for violation in self.violations)

    @property
    def open_rules(self) -> tuple[str, ...]:
        """The numbers of the reasons that leave the verdict open, each once."""
        return tuple(dict.fromkeys(doubt.rule for doubt in self.doubts))
