"""The audit as lines: the answer first, then what loses data, what weakens, and what nobody knows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from zerotail.audit.judgement import Audit, Finding, Unknown

_WIDTH = 110
_NAMED = 3


def audit_lines(audit: Audit) -> list[str]:
    """Everything, for a screen. What is the same for several subjects is said once."""
    lines = [first_line(audit)]
    for finding, others in _grouped(audit.findings):
        lines += ["", *_finding_lines(finding, others)]
    if audit.unknown:
        lines += ["", *_unknown_lines(audit.unknown)]
    return lines


def first_line(audit: Audit) -> str:
    """The answer and its figures."""
    loss, risk = len(audit.of("loss")), len(audit.of("risk"))
    checks = sum(one.subjects for one in audit.passed)
    word = {"clean": "CLEAN", "unknown": "UNKNOWN", "findings": "FINDINGS"}[audit.answer]
    figures = [f"{loss} lose data, {risk} weaken"] if audit.findings else ["nothing found"]
    figures.append(f"{checks} checks passed")
    if audit.unknown:
        figures.append(f"{sum(len(one.rules) for one in audit.unknown)} could not be made")
    return f"{word}     {', '.join(figures)}"


def _grouped(findings: Sequence[Finding]) -> Iterator[tuple[Finding, list[Finding]]]:
    """The first finding of each rule, with all of the rule."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for some in by_rule.values():
        yield some[0], some


def _finding_lines(finding: Finding, all_of_rule: list[Finding]) -> Iterator[str]:
    yield f"{finding.weight.upper():<8} {finding.rule}"
    for one in all_of_rule:
        yield f"    seen     {one.subject}: {one.seen}"
    yield f"    wanted   {finding.title}"
    yield from _paragraph("why", finding.why)
    yield from _paragraph("default", finding.default)
    for line in dict.fromkeys(one.repair for one in all_of_rule):
        yield f"    repair   {line}"


def _paragraph(name: str, text: str) -> list[str]:
    # A line to type is never broken; these are read.
    return textwrap.wrap(text, _WIDTH, initial_indent=f"    {name:<9}", subsequent_indent=" " * 13)


def _unknown_lines(unknown: Sequence[Unknown]) -> Iterator[str]:
    """One line for each reason: a dead broker may leave something unknown of a thousand topics."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in unknown:
        grouped.setdefault((one.reason, one.rules), []).append(one.subject)
    for (reason, ids), subjects in grouped.items():
        more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
        rules = ", ".join(ids) if len(ids) <= _NAMED else f"{len(ids)} rules"
        yield f"UNKNOWN  {subjects[0]}{more}: {reason} ({rules})"
