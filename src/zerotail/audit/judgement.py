"""Rules over facts: what is wrong, what holds, and what nobody knows. Pure.

1. A subject passes a rule only if the rule's predicate was computed to the end and found nothing.
2. A fact that the predicate needed and that was not seen makes the subject unknown under that rule.
3. What could not be looked at at all is unknown under every rule for its kinds of subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from zerotail.audit.facts import NotSeen, Observed, Subject
from zerotail.audit.rule import AnyRule, Weight, repair_line
from zerotail.audit.rules import RULES


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that is not kept."""

    rule: str
    title: str
    weight: Weight
    subject: str
    seen: str
    why: str
    default: str
    repair: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """What could not be looked at, why, and the rules that have no answer therefore."""

    subject: str
    reason: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passed:
    """A rule, and how many subjects keep it."""

    rule: str
    title: str
    subjects: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The whole answer."""

    answer: Literal["clean", "findings", "unknown"]
    answered: bool
    """Whether anybody did."""
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    passed: tuple[Passed, ...]

    def of(self, weight: Weight) -> tuple[Finding, ...]:
        """The findings of one weight."""
        return tuple(finding for finding in self.findings if finding.weight == weight)

    def exit_code(self, *, strict: bool) -> int:
        """1: a finding that loses data, with `strict` any finding. 4: none, but not everything was seen. 0: else."""
        if (strict and self.findings) or self.of("loss"):
            return 1
        return 4 if self.unknown else 0


def judge(observed: Observed, rules: Sequence[AnyRule] = RULES) -> Audit:
    """Hold every rule against every subject of its kind."""
    findings: list[Finding] = []
    unseen: dict[tuple[str, str], list[str]] = {}
    passed: list[Passed] = []
    for rule in rules:
        kept = 0
        for subject in observed.subjects:
            if isinstance(subject, rule.kind):
                try:
                    found = _findings(rule, subject)
                except NotSeen as reason:
                    unseen.setdefault((subject.name, str(reason)), []).append(rule.id)
                    continue
                findings += found
                kept += not found
        if kept:
            passed.append(Passed(rule.id, rule.title, kept))
    unknown = [
        Unknown(one.name, one.reason, tuple(rule.id for rule in rules if rule.kind in one.kinds))
        for one in observed.unlooked
    ]
    unknown += [Unknown(name, reason, tuple(ids)) for (name, reason), ids in unseen.items()]
    findings.sort(key=lambda finding: finding.weight != "loss")
    answer: Literal["clean", "findings", "unknown"] = "findings" if findings else "unknown" if unknown else "clean"
    return Audit(answer, observed.answered, tuple(findings), tuple(unknown), tuple(passed))


def _findings(rule: AnyRule, subject: Subject) -> list[Finding]:
    return [
        Finding(
            rule.id,
            rule.title,
            rule.weight,
            subject.name,
            violation.seen,
            rule.why,
            rule.default,
            repair_line(rule, {**subject.words, **violation.words}),
        )
        for violation in rule.violations(subject)
    ]
