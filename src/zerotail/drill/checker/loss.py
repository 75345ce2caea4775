"""Nothing is lost on the way: from the client to the row, to the journal, to the receiver (S1, S17).

S1 is the promise to others: what was acknowledged, and what is owed to the outside. S17 is the same account
for everything else that exists after the drain, whether anybody was told of it or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.core.identity import PartitionNumber, Position, ProducerName, Serial, StageName
from zerotail.drill.checker.facts import Facts
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import (
    Digest,
    FinalSegment,
    PoisonDecided,
    SubmitAccepted,
    SubmitInvoked,
)


def no_loss(facts: Facts) -> Iterator[Finding]:
    """S1: what was acknowledged has its row and is journaled; what the journal emits was accepted."""
    yield from _acknowledged_and_gone(facts)
    yield from _emitted_and_never_accepted(facts)


def _acknowledged_and_gone(facts: Facts) -> Iterator[Finding]:
    invoked: dict[str, SubmitInvoked] = {}
    row_of, taken, takers = facts.row_of, facts.taken, facts.takers
    for event in facts.submissions:
        if type(event) is SubmitInvoked:
            invoked.setdefault(event.id, event)
        elif type(event) is SubmitAccepted:
            row = row_of.get(event.id)
            asked = (invoked[event.id],) if event.id in invoked else ()
            if row is None:
                yield Finding(f"submission {event.id} was acknowledged and has no row", (*asked, event))
                continue
            for stage in takers.get(row.producer, ()):
                journaled = taken.get((stage, row.partition, row.producer))
                if journaled is None or not journaled.has(row.serial):
                    says = f"submission {event.id} was acknowledged and stage {stage} never took it"
                    yield Finding(says, (event, row))


def _emitted_and_never_accepted(facts: Facts) -> Iterator[Finding]:
    for stream, emissions in facts.reference.items():
        channel, partition, _ = stream
        declared = facts.channel.get(channel)
        if declared is None or declared.receiver == "stage":
            continue
        received = facts.received.get(stream)
        if received is not None and not received.holes and received.last >= max(emissions):
            continue
        for number, (_, segment) in emissions.items():
            if (received is None or not received.has(number)) and not facts.listed(stream, number):
                says = f"emission {number} of {channel}, partition {partition}, was never accepted"
                yield Finding(says, (segment,))


def conservation(facts: Facts) -> Iterator[Finding]:
    """S17: every row and every emission to a stage is journaled; every skipped record was decided on."""
    for (producer, partition), records in facts.owed.items():
        for stage in facts.takers.get(producer, ()):
            journaled = facts.taken.get((stage, partition, producer))
            if journaled is not None and not journaled.holes and journaled.last >= max(records):
                continue
            for serial, (_, origin) in records.items():
                if journaled is None or not journaled.has(serial):
                    says = f"record {serial} of {producer}, partition {partition}, was never taken by {stage}"
                    yield Finding(says, (origin,))
    yield from _skipped_without_decision(facts)


_Record = tuple[StageName, PartitionNumber, ProducerName, Serial, Digest]


def _skipped_without_decision(facts: Facts) -> Iterator[Finding]:
    decided = _standing_decisions(facts)
    carried_out: set[_Record] = set()
    for segments in facts.journal.values():
        for segment in segments:
            for position in segment.skipped:
                record = _record_at(segment, position)
                if record is None or record not in decided:
                    yield Finding(f"position {position} was skipped and nobody decided so", (segment,))
                else:
                    carried_out.add(record)
    for record, decision in decided.items():
        if record not in carried_out:
            _, partition, producer, serial, _ = record
            says = f"record {serial} of {producer}, partition {partition}, was to be skipped and was not"
            yield Finding(says, (decision,))


def _standing_decisions(facts: Facts) -> dict[_Record, PoisonDecided]:
    """Decisions to skip that hold in the end: the last word on a record, if the record still exists.

    A takeover may lose a decision that nothing outside depended on, or even the record it was about.
    """
    last: dict[_Record, PoisonDecided] = {}
    for d in facts.decisions:
        digest, _ = facts.owed.get((d.producer, d.partition), {}).get(d.serial, ("", None))
        if digest == d.digest:
            last[d.stage, d.partition, d.producer, d.serial, d.digest] = d
    return {record: decision for record, decision in last.items() if decision.decision == "skip"}


def _record_at(segment: FinalSegment, position: Position) -> _Record | None:
    index = position - segment.first_position
    if not 0 <= index < len(segment.inputs):
        return None
    before = 0
    for run in segment.runs:
        if index < before + run.count:
            serial = Serial(run.first_serial + index - before)
            return (segment.stage, segment.partition, run.producer, serial, segment.inputs[index])
        before += run.count
    return None
