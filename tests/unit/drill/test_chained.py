"""The bytes under a chain, laid out twice: by the code that writes journals, and by the one that judges them."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.core.head import Segment, advance, first_head
from zerotail.core.identity import Epoch, PartitionNumber, ProducerName, ProducerNumber, Serial, SiteName, StageName
from zerotail.core.poison import Decision, Remedy
from zerotail.core.record import digest_of
from zerotail.drill.chained import ChainedBytes, decisions_of
from zerotail.drill.checker import Expect, check
from zerotail.drill.history import FinalSegment, Run

pytestmark = pytest.mark.fast

EAST, SETTLE, FIRST = SiteName("east"), StageName("settle"), PartitionNumber(0)
NUMBERS = {ProducerName("cards"): ProducerNumber(1), ProducerName("wires"): ProducerNumber(2)}
NAMES = {number: name for name, number in NUMBERS.items()}
DECISIONS = st.sampled_from(
    [
        None,
        None,
        Decision(Remedy.SKIP, digest_of(b"it")),
        Decision(Remedy.REPLACE, digest_of(b"it"), b""),
        Decision(Remedy.REPLACE, digest_of(b"it"), b"another value"),
    ]
)
RECORDS = st.lists(st.tuples(st.sampled_from([*NAMES]), DECISIONS), min_size=1, max_size=20)


def journal_of(batches: list[list[tuple[ProducerNumber, Decision | None]]]) -> list[Segment]:
    """A segment for each batch of records, with what was decided about them."""
    head = first_head(Epoch(256), [*NAMES])
    segments = []
    for batch in batches:
        last = dict(head.vector)
        serials = []
        for producer, _ in batch:
            last[producer] = Serial(last[producer] + 1)
            serials.append(last[producer])
        head, segment = advance(
            head,
            producers=[producer for producer, _ in batch],
            serials=serials,
            digests=[
                digest_of(b"%d/%d" % (producer, serial)) for (producer, _), serial in zip(batch, serials, strict=True)
            ],
            decided_at=head.decided_at + 1_000,
            version="1",
            owed={},
            hint=None,
            decided=[(place, decision) for place, (_, decision) in enumerate(batch) if decision],
        )
        segments.append(segment)
    return segments


def told(segment: Segment) -> FinalSegment:
    """The segment as a history has it."""
    return FinalSegment(
        site=EAST,
        stage=SETTLE,
        partition=FIRST,
        segment=segment.segment,
        epoch=segment.epoch,
        first_position=segment.first_position,
        runs=tuple(Run(NAMES[producer], first, count) for producer, first, count in segment.runs),
        inputs=tuple(digest.hex() for digest in segment.digests),
        decided_at=segment.decided_at,
        version=segment.version,
        previous=segment.previous.hex(),
        content=segment.content.hex(),
        chain=segment.chain.hex(),
    )


@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_both_lay_out_the_same_bytes_whatever_was_decided(
    batches: list[list[tuple[ProducerNumber, Decision | None]]],
) -> None:
    segments = journal_of(batches)
    chained = ChainedBytes(NUMBERS, decisions_of(EAST, SETTLE, FIRST, segments))
    for segment in segments:
        assert sha256(chained(told(segment))).digest() == segment.content
    verdict = check([told(segment) for segment in segments], Expect(), content_of=chained)
    assert "S10" not in verdict.broken_rules


@pytest.mark.parametrize("remedy", Remedy)
def test_a_decision_that_the_database_does_not_hold_breaks_the_chain(remedy: Remedy) -> None:
    decision = Decision(remedy, digest_of(b"it"), b"another value" if remedy is Remedy.REPLACE else b"")
    (segment,) = journal_of([[(ProducerNumber(1), decision)]])
    verdict = check([told(segment)], Expect(), content_of=ChainedBytes(NUMBERS, {}))
    assert "S10" in verdict.broken_rules
