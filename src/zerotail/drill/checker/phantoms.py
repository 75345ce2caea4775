"""Nothing appears that nobody asked for, and nothing comes back from a lineage that has ended (S2, S16)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from zerotail.core.identity import Serial
from zerotail.drill.checker.facts import Facts
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import DivergentSegment, FinalInstruction, SubmitFailed, SubmitInvoked


def no_phantom(facts: Facts) -> Iterator[Finding]:
    """S2: accepted emissions are those of the journal, records those of the rows, rows those of clients."""
    yield from _emissions_nobody_owed(facts)
    yield from _rows_nobody_submitted(facts)
    yield from _records_nobody_wrote(facts)


def _emissions_nobody_owed(facts: Facts) -> Iterator[Finding]:
    for stream, attempts in facts.accepted.items():
        channel, partition, _ = stream
        owed = facts.reference.get(stream, {})
        for attempt in attempts:
            expected = owed.get(attempt.number)
            if expected is not None and expected[0] == attempt.digest:
                continue
            name = f"emission {attempt.number} of {channel}, partition {partition},"
            if expected is None:
                yield Finding(f"{name} is not in the journal", (attempt,))
            else:
                yield Finding(f"{name} differs from the journal's", (attempt, expected[1]))


def _rows_nobody_submitted(facts: Facts) -> Iterator[Finding]:
    invoked: dict[str, list[SubmitInvoked]] = defaultdict(list)
    failed: dict[str, list[SubmitFailed]] = defaultdict(list)
    for event in facts.submissions:
        if type(event) is SubmitInvoked:
            invoked[event.id].append(event)
        elif type(event) is SubmitFailed:
            failed[event.id].append(event)
    for row in facts.rows:
        calls = invoked.get(row.id)
        if calls is None:
            yield Finding(f"{_name(row)} was never submitted", (row,))
        elif not any(_same_instruction(call, row) for call in calls):
            yield Finding(f"{_name(row)} is not what was submitted as {row.id}", (calls[0], row))
        elif row.id in failed and len(failed[row.id]) >= len(calls):
            yield Finding(f"{_name(row)} exists although {row.id} was refused", (failed[row.id][-1], row))


def _same_instruction(call: SubmitInvoked, row: FinalInstruction) -> bool:
    return (call.digest, call.producer, call.partition) == (row.digest, row.producer, row.partition)


def _records_nobody_wrote(facts: Facts) -> Iterator[Finding]:
    for (stage, partition), segments in facts.journal.items():
        for segment in segments:
            digests = iter(segment.inputs)
            for run in segment.runs:
                owed = facts.owed.get((run.producer, partition), {})
                known = stage in facts.takers.get(run.producer, ())
                for serial, digest in zip(range(run.first_serial, run.first_serial + run.count), digests, strict=False):
                    origin = owed.get(Serial(serial))
                    if origin is not None and origin[0] == digest and known:
                        continue
                    name = f"record {serial} of {run.producer} in {stage}, partition {partition},"
                    if origin is None or not known:
                        yield Finding(f"{name} has no origin", (segment,))
                    else:
                        yield Finding(f"{name} was changed", (origin[1], segment))


def _name(row: FinalInstruction) -> str:
    return f"instruction {row.serial} of {row.producer}, partition {row.partition},"


def no_resurrection(facts: Facts) -> Iterator[Finding]:
    """S16: what only a deposed site had is kept for audit and is nowhere else."""
    chains = {
        (segment.stage, segment.partition, segment.segment, segment.chain): segment
        for segments in facts.journal.values()
        for segment in segments
        if segment.chain
    }
    for segments in facts.journal.values():
        for segment in segments:
            if facts.lineage and segment.epoch not in facts.lineage:
                says = f"segment {segment.segment} is of epoch {segment.epoch}, not of the final lineage"
                yield Finding(says, (segment,))
    for divergent in facts.divergent:
        came_back = chains.get((divergent.stage, divergent.partition, divergent.segment, divergent.chain))
        if came_back is not None:
            says = f"segment {divergent.segment} lived on {divergent.site} only and came back"
            yield Finding(says, (divergent, came_back))
        yield from _emissions_of_a_dead_lineage(facts, divergent)
    yield from _divergent_and_not_kept(facts)


def _emissions_of_a_dead_lineage(facts: Facts, divergent: DivergentSegment) -> Iterator[Finding]:
    for emission in divergent.emissions:
        stream = (emission.channel, divergent.partition, emission.target_partition)
        owed = facts.reference.get(stream, {}).get(emission.number)
        if owed is not None and owed[0] == emission.digest:
            continue
        for attempt in facts.accepted.get(stream, ()):
            if attempt.number == emission.number and attempt.digest == emission.digest:
                says = f"emission {emission.number} of {emission.channel} was accepted from a lineage that ended"
                yield Finding(says, (divergent, attempt))


def _divergent_and_not_kept(facts: Facts) -> Iterator[Finding]:
    rejoined = {site.site for site in facts.sites if site.role in ("active", "standby")}
    kept = {(d.site, d.stage, d.partition, d.segment, d.chain) for d in facts.divergent if d.found == "audit"}
    for divergent in facts.divergent:
        key = (divergent.site, divergent.stage, divergent.partition, divergent.segment, divergent.chain)
        if divergent.found == "deposed" and divergent.site in rejoined and key not in kept:
            says = f"segment {divergent.segment}, found on {divergent.site} only, was not kept for audit"
            yield Finding(says, (divergent,))
