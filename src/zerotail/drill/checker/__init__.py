"""The judge of a run: reads its history, applies every rule, returns a verdict with witnesses.

The rules and their numbers are those of `docs/verdicts.md`, one function each, in rooms by subject:

    loss      S1 S17          nothing is lost on the way
    phantoms  S2 S16          nothing appears or comes back
    numbers   S3 S4 S5 S12    counted without repeats, leaps and turns
    senders   S6 S7           one sender at a time, in an epoch of its own
    gate      S8 S18          behind the gate, or exposed and openly so
    sites     S9 S10 S11 S15  two sites, one history
    mirrors   S13             copies agree with their sources
    clients   S14 S19         answers stay true
    liveness  L1 … L7         in time
    evidence  N1 … N7         could it have failed at all?

Nothing here is shared with the parts that send, but the numbers of `core/identity.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from zerotail.core.verdict import Verdict, Violation
from zerotail.drill.checker.clients import honest_answers, real_time
from zerotail.drill.checker.evidence import SIMULATED, Expect, find_doubts, reached_states
from zerotail.drill.checker.facts import Facts
from zerotail.drill.checker.finding import Finding, Rule
from zerotail.drill.checker.gate import durable_before_sent, no_silent_exposure
from zerotail.drill.checker.liveness import LIMITED, fenced_process_ends, within_limit
from zerotail.drill.checker.loss import conservation, no_loss
from zerotail.drill.checker.mirrors import mirror_agreement
from zerotail.drill.checker.numbers import no_duplicate, no_gap, no_reorder, source_function
from zerotail.drill.checker.phantoms import no_phantom, no_resurrection
from zerotail.drill.checker.senders import epoch_discipline, one_sender
from zerotail.drill.checker.sites import (
    ContentOf,
    canonical_content,
    fence_is_final,
    hash_chain,
    prefix_agreement,
    same_state,
)
from zerotail.drill.checker.story import witness
from zerotail.drill.history import AnyEvent, FaultBegan
from zerotail.drill.recording import History, read_history
from zerotail.garbage import collection_paused

__all__ = ["SIMULATED", "Expect", "check"]

_ALWAYS: dict[str, Rule] = {
    "S3": no_duplicate,
    "S4": no_reorder,
    "S5": no_gap,
    "S6": one_sender,
    "S7": epoch_discipline,
    "S8": durable_before_sent,
    "S9": prefix_agreement,
    "S11": same_state,
    "S12": source_function,
    "S13": mirror_agreement,
    "S14": honest_answers,
    "S15": fence_is_final,
    "S18": no_silent_exposure,
    "S19": real_time,
    **{rule: within_limit(rule) for rule in LIMITED},
}
_WITH_FINAL_JOURNAL: dict[str, Rule] = {
    "S1": no_loss,
    "S2": no_phantom,
    "S16": no_resurrection,
    "S17": conservation,
}
"""These compare with the final journal; without one they would find everything missing."""


@collection_paused()
def check(
    history: Path | History | Sequence[AnyEvent],
    expect: Expect | None = None,
    *,
    content_of: ContentOf = canonical_content,
) -> Verdict:
    """Judge a run from the directory of its history, from a history that was read, or from merged events."""
    match history:
        case Path():
            history = read_history(history)
        case History():
            pass
        case _:
            history = History(events=history)
    expect = expect or Expect()
    facts = Facts(history.events)
    rules = dict(_ALWAYS)
    rules["S10"] = partial(hash_chain, content_of=content_of)
    if facts.active is not None:
        rules |= _WITH_FINAL_JOURNAL
    if expect.fenced_process_limit is not None:
        rules["L4"] = partial(fenced_process_ends, limit=expect.fenced_process_limit)
    violations = [violation for name, rule in rules.items() if (violation := _smallest(name, rule(facts))) is not None]
    violations.sort(key=lambda violation: (violation.rule[0] == "L", int(violation.rule[1:])))
    reached = reached_states(facts)
    return Verdict(
        violations=tuple(violations),
        doubts=tuple(find_doubts(history, facts, reached, expect)),
        counted=_counted(history, facts) | {state: times for state, times in reached.items() if times},
        notes=tuple(f"the last line of {recorder} is torn" for recorder in history.torn),
    )


def _smallest(rule: str, findings: Iterator[Finding]) -> Violation | None:
    """The finding with the fewest events, the earliest of them, and how many there were."""
    best: Finding | None = None
    count = 0
    for finding in findings:
        count += 1
        if best is None or len(finding.witness) < len(best.witness):
            best = finding
    if best is None:
        return None
    return Violation(rule=rule, says=best.says, witness=tuple(map(witness, best.witness)), count=count)


def _counted(history: History, facts: Facts) -> dict[str, int]:
    return {
        "events": len(history.events),
        "submissions": len({event.id for event in facts.submissions}),
        "rows": len(facts.rows),
        "segments": sum(map(len, facts.journal.values())),
        "accepted emissions": sum(map(len, facts.accepted.values())),
        "faults": sum(type(event) is FaultBegan for event in facts.faults),
    }
