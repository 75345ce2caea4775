"""A verdict as a screen of text (`verdict.txt`), and as a value for programs (`verdict.json`).

The text is for whoever has to decide what to do next: the outcome first, then each broken rule with the
events that prove it, in the order in which they happened, each with the file and line where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zerotail.core.verdict import Outcome, Verdict, Violation
from zerotail.drill.checker.names import RULE_NAMES

SCHEMA = "zerotail/verdict/1"
_MOST_RULES = 6
_MOST_DOUBTS = 10
_EXPLAINED = {
    Outcome.PASSED: "no rule is broken, and the run was able to break them",
    Outcome.FAILED: "a rule is broken",
    Outcome.UNDECIDED: "no rule is broken, but the run proves too little; this is not a pass",
}


def verdict_as_text(verdict: Verdict) -> str:
    """One screen in plain words."""
    lines = [f"{verdict.outcome.value.upper()}: {_EXPLAINED[verdict.outcome]}"]
    for violation in verdict.violations[:_MOST_RULES]:
        lines += ["", *_violation_lines(violation)]
    lines += _rest([violation.rule for violation in verdict.violations], _MOST_RULES, "also broken")
    if verdict.doubts:
        lines += ["", "Open:"]
        lines += [f"  {_rule(doubt.rule)}: {doubt.says}" for doubt in verdict.doubts[:_MOST_DOUBTS]]
        lines += _rest([doubt.says for doubt in verdict.doubts], _MOST_DOUBTS, "also open")
    lines += ["", *_counted_lines(verdict)]
    lines += [f"Note: {note}." for note in verdict.notes]
    return "\n".join(lines) + "\n"


def _violation_lines(violation: Violation) -> list[str]:
    times = f"  ({violation.count} times)" if violation.count > 1 else ""
    lines = [f"  {_rule(violation.rule)}: {violation.says}{times}"]
    for event in sorted(violation.witness, key=lambda witness: witness.time):
        lines.append(f"    at {event.time}  {event.says}")
        lines.append(f"    {'':{len(str(event.time)) + 4}} [{event.recorder}.jsonl, line {event.sequence}]")
    return lines


def _counted_lines(verdict: Verdict) -> list[str]:
    counted = [f"{number} {name}" for name, number in verdict.counted.items()]
    rows = [", ".join(counted[start : start + 6]) for start in range(0, len(counted), 6)]
    return [("      " if index else "Seen: ") + row for index, row in enumerate(rows)]


def _rest(names: Sequence[str], shown: int, word: str) -> list[str]:
    if len(names) <= shown:
        return []
    rest = names[shown:]
    return ["", f"  {word}: " + (", ".join(rest) if len(rest) <= shown else f"{len(rest)} more")]


def _rule(rule: str) -> str:
    return f"{rule} {RULE_NAMES[rule]}"


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain values, all of it."""
    return {
        "schema": SCHEMA,
        "outcome": verdict.outcome.value,
        "violations": [
            {
                "rule": violation.rule,
                "name": RULE_NAMES[violation.rule],
                "says": violation.says,
                "count": violation.count,
                "witness": [
                    {
                        "time": event.time,
                        "recorder": event.recorder,
                        "sequence": event.sequence,
                        "says": event.says,
                    }
                    for event in violation.witness
                ],
            }
            for violation in verdict.violations
        ],
        "doubts": [
            {"rule": doubt.rule, "name": RULE_NAMES[doubt.rule], "says": doubt.says} for doubt in verdict.doubts
        ],
        "counted": dict(verdict.counted),
        "notes": list(verdict.notes),
    }
