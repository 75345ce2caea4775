"""Could the run have failed at all? (N1 … N7)

A drill whose fault did not bite, or whose standby nobody read, breaks no rule and proves nothing. Each
function gives the sentences that leave the verdict open; `Expect` says how much a run has to prove.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from zerotail.core.verdict import Doubt
from zerotail.drill.checker.facts import Facts
from zerotail.drill.history import (
    ChannelClaimed,
    EpochOpened,
    FaultBegan,
    FaultEnded,
    LimitReached,
    Released,
    SubmitAccepted,
    SubmitInvoked,
    SubmitUnknown,
    hop_producer,
)
from zerotail.drill.recording import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What a run has to have shown before it may be called passed. The defaults are those of a drill."""

    faults: int = 1
    """At least so many faults; each must have bitten."""
    work_around_faults: bool = True
    work_during_faults: bool = True
    """False where the fault stops all work by design: then work must have been attempted."""
    states: tuple[str, ...] = ("unknown outcome",)
    """Rare states that must have been reached."""
    limits: tuple[str, ...] = ()
    """Liveness rules that must have been measured."""
    standby: bool = True
    chain: bool = True
    replay: bool = True
    work: bool = True
    fenced_process_limit: int | None = 5_000_000_000
    """L4, in the history's units of time; None where processes are not recorded."""


SIMULATED = Expect(
    faults=0,
    work_around_faults=False,
    states=(),
    standby=False,
    chain=False,
    replay=False,
    work=False,
    fenced_process_limit=None,
)
"""A simulated run chooses its faults itself and counts over many runs what was reached."""


def find_doubts(history: History, facts: Facts, reached: Mapping[str, int], expect: Expect) -> Iterator[Doubt]:
    """All reasons that leave the verdict open; `reached` are the states that the run has reached."""
    yield from (Doubt("N1", sentence) for sentence in history.damaged)
    yield from _faults_bit(facts, expect)
    yield from _work_around_faults(facts, expect)
    for state in expect.states:
        if not reached.get(state):
            yield Doubt("N4", f"the run was meant to reach “{state}” and did not")
    yield from _both_ends_read(facts, expect)
    yield from _work_at_all(facts, expect)
    measured = {event.rule for event in facts.limits if type(event) is not LimitReached}
    for rule in expect.limits:
        if rule not in measured:
            yield Doubt("N7", f"{rule} was promised and not measured")


def _faults_bit(facts: Facts, expect: Expect) -> Iterator[Doubt]:
    faults = [event for event in facts.faults if type(event) is FaultBegan]
    if len(faults) < expect.faults:
        yield Doubt("N2", f"{expect.faults} faults were expected and {len(faults)} injected")
    for fault in faults:
        if not fault.bit:
            yield Doubt("N2", f"fault {fault.fault} ({fault.action} {fault.target}) did not bite")
        elif not fault.evidence:
            yield Doubt("N2", f"fault {fault.fault} ({fault.action} {fault.target}) shows no evidence")


def _work_around_faults(facts: Facts, expect: Expect) -> Iterator[Doubt]:
    if not expect.work_around_faults:
        return
    done = [event.time for event in facts.submissions if type(event) is SubmitAccepted]
    done += [attempt.time for attempt in facts.attempts if attempt.answer == "accepted"]
    done.sort()
    during = done
    if not expect.work_during_faults:
        asked = [event.time for event in facts.submissions if type(event) is SubmitInvoked]
        during = sorted([*asked, *(attempt.time for attempt in facts.attempts)])
    ends = {event.fault: event.time for event in facts.faults if type(event) is FaultEnded}
    for fault in facts.faults:
        if type(fault) is not FaultBegan:
            continue
        end = ends.get(fault.fault, -1)
        if not done or done[0] >= fault.time:
            yield Doubt("N3", f"nothing was completed before fault {fault.fault}")
        healed = end >= fault.time
        if healed and bisect_right(during, fault.time) == bisect_left(during, end):
            word = "completed" if expect.work_during_faults else "attempted"
            yield Doubt("N3", f"nothing was {word} during fault {fault.fault}")
        if not done or done[-1] <= max(fault.time, end):
            yield Doubt("N3", f"nothing was completed after fault {fault.fault}")


def reached_states(facts: Facts) -> Counter[str]:
    """The rare states of a run by name, and how often each was reached."""
    reached = Counter(event.state for event in facts.states_reached)
    reached["unknown outcome"] = sum(type(event) is SubmitUnknown for event in facts.submissions)
    reached["doubt"] = len(facts.doubts)
    reached["divergent tail"] = len(facts.divergent)
    reached["skipped record"] = sum(len(segment.skipped) for segment in facts.segments)
    for event in facts.sending:
        if type(event) is Released and event.by == "exposure":
            reached["exposed release"] += 1
        elif type(event) is EpochOpened:
            reached[event.cause] += 1
        elif type(event) is ChannelClaimed and event.answer == "older-epoch":
            reached["refused by fence"] += 1
    answers = Counter(attempt.answer for attempt in facts.attempts)
    reached["repeat"] = answers["repeat"]
    reached["refused by gap"] = answers["gap"]
    reached["refused by fence"] += answers["older-epoch"]
    hops = {
        hop_producer(channel.stage, partition)
        for channel in facts.channels
        if channel.receiver == "stage"
        for stage, partition in facts.journal
        if stage == channel.stage
    }
    reached["handed over between stages"] = sum(
        counting.last for (_, _, producer), counting in facts.taken.items() if producer in hops
    )
    return reached


def _both_ends_read(facts: Facts, expect: Expect) -> Iterator[Doubt]:
    if facts.active is None:
        yield Doubt("N5", "no single site ended active, so that there is no final journal")
    elif not facts.journal:
        yield Doubt("N5", f"the journal of {facts.active.site} was not read")
    if expect.standby and not any(site.role == "standby" for site in facts.sites):
        yield Doubt("N5", "no standby was read at the end")
    if expect.chain and not all(segment.chain and segment.content for segment in facts.segments):
        yield Doubt("N5", "the journal was read without its chain hashes")
    stages = {declared.stage for declared in facts.stages}
    emitting = {emission.channel for s in facts.segments for emission in s.emissions}
    for channel in sorted(emitting - set(facts.channel)):
        yield Doubt("N5", f"channel {channel} is not declared")
    for stage in sorted({stage for stage, _ in facts.journal} - stages):
        yield Doubt("N5", f"stage {stage} is not declared")
    if expect.replay:
        compared: dict[tuple[str, int, int], set[str]] = {}
        for state in facts.states:
            compared.setdefault((state.stage, state.partition, state.segment), set()).add(state.source)
        for (stage, partition), segments in facts.journal.items():
            if len(compared.get((stage, partition, segments[-1].segment), ())) < 2:
                says = f"the last state of {stage}, partition {partition}, was not both stored and replayed"
                yield Doubt("N5", says)


def _work_at_all(facts: Facts, expect: Expect) -> Iterator[Doubt]:
    if not expect.work:
        return
    if not any(type(event) is SubmitAccepted for event in facts.submissions):
        yield Doubt("N6", "no submission was acknowledged")
    used = {channel for channel, _, _ in facts.accepted}
    for declared in facts.channels:
        if declared.receiver != "stage" and declared.channel not in used:
            yield Doubt("N6", f"nothing was accepted on channel {declared.channel}")
