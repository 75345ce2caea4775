"""The walk over a journal, on segments that were never in a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from zerotail.core.continuity import (
    Content,
    Fault,
    SegmentRow,
    content_of,
    find_wrong_head,
    follow,
)
from zerotail.core.emission import LaneKey, number_emissions
from zerotail.core.head import Head, advance, first_head, runs_of
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
)
from zerotail.core.order import Runs
from zerotail.core.record import digest_of
from zerotail.core.segment import encode_order

pytestmark = pytest.mark.fast

BANK, AUDIT = (ChannelName("bank"), PartitionNumber(0)), (ChannelName("audit"), PartitionNumber(1))
ONE, TWO = ProducerNumber(1), ProducerNumber(2)
BEGINNING = first_head(Epoch(0), ())


def value_of(producer: int, serial: int) -> bytes:
    return b"%d/%d" % (producer, serial)


def write(seed: int, sizes: Sequence[int] = (5, 80, 1)) -> tuple[list[SegmentRow], list[Content], Head]:
    """Segments as a stage stores them, with what their content comes to, and the last head."""
    random = Random(seed)
    head = first_head(Epoch(256), [ONE, TWO])
    rows, contents = [], []
    for size in sizes:
        owners = random.choices([ONE, TWO], k=size)
        vector = dict(head.vector)
        serials = []
        for owner in owners:
            vector[owner] = Serial(vector[owner] + 1)
            serials.append(vector[owner])
        said: dict[LaneKey, list[bytes]] = {}
        for serial in serials:
            said.setdefault(random.choice([BANK, AUDIT]), []).append(b"m%d" % serial)
        owed = number_emissions(head.numbers, said)
        head, segment = advance(
            head,
            producers=owners,
            serials=serials,
            digests=[digest_of(value_of(*name)) for name in zip(owners, serials, strict=True)],
            decided_at=head.decided_at + 10,
            version="1",
            owed=owed,
            hint=None,
        )
        order = encode_order(Runs.of((producer, count) for producer, _, count in segment.runs))
        firsts = tuple(next(s for p, s, _ in segment.runs if p == producer) for producer in order.producers)
        row = SegmentRow(
            segment.segment,
            segment.epoch,
            segment.first_position,
            order,
            firsts,
            segment.decided_at,
            segment.version,
            segment.chain,
            segment.output_chain,
        )
        assert row.runs() == segment.runs == runs_of(owners, serials)
        values = {p: {Serial(s): value_of(p, s) for s in range(1, 200)} for p in (ONE, TWO)}
        rows.append(row)
        contents.append(content_of(row, values, owed))
    return rows, contents, head


def walk(rows: Sequence[SegmentRow], contents: Sequence[Content]) -> Head | Fault:
    head = BEGINNING
    for row, content in zip(rows, contents, strict=True):
        behind = follow(head, row, content)
        if isinstance(behind, Fault):
            return behind
        head = behind
    return head


@pytest.mark.parametrize("seed", range(20))
def test_a_journal_leads_to_its_head(seed: int) -> None:
    rows, contents, head = write(seed)
    reached = walk(rows, contents)
    assert isinstance(reached, Head)
    assert find_wrong_head(reached, head) is None
    assert replace(reached, vector=head.vector) == head


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("segments", {"segment": SegmentNumber(3)}),
        ("positions", {"first_position": Position(6)}),
        ("epochs", {"epoch": Epoch(255)}),
        ("times", {"decided_at": 9}),
        ("chain", {"decided_at": 21}),
        ("chain", {"version": "2"}),
        ("serials", {"first_serials": (Serial(9), Serial(9))}),
        ("output chain", {"output_chain": bytes(32)}),
    ],
)
def test_a_changed_segment_is_named(rule: str, changed: dict[str, object]) -> None:
    rows, contents, _ = write(1)
    rows[1] = replace(rows[1], **changed)  # type: ignore[arg-type]
    values = {p: {Serial(s): value_of(p, s) for s in range(1, 200)} for p in (ONE, TWO)}
    contents[1] = replace(content_of(rows[1], values, {}), owed=contents[1].owed, lanes=contents[1].lanes)
    fault = walk(rows, contents)
    assert isinstance(fault, Fault)
    assert (fault.rule, fault.segment, fault.position) == (rule, 2, 5)


def test_a_value_that_is_not_there_is_named() -> None:
    rows, contents, _ = write(1)
    values = {p: {Serial(s): value_of(p, s) for s in range(1, 200) if (p, s) != (TWO, 20)} for p in (ONE, TWO)}
    contents[1] = content_of(rows[1], values, {})
    fault = walk(rows, contents)
    assert isinstance(fault, Fault)
    assert (fault.rule, fault.segment, fault.record) == ("records", 2, (TWO, 20))


def test_emission_numbers_that_leave_one_out_are_named() -> None:
    rows, contents, _ = write(1)
    first, count = contents[1].lanes[BANK]
    contents[1] = replace(contents[1], lanes={BANK: (EmissionNumber(first + 1), count)})
    fault = walk(rows, contents)
    assert isinstance(fault, Fault)
    assert (fault.rule, fault.segment) == ("emissions", 2)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("segment", {"segment": SegmentNumber(4)}),
        ("next position", {"next_position": Position(0)}),
        ("vector", {"vector": {}}),
        ("emission numbers", {"numbers": {}}),
        ("chain", {"chain": bytes(32)}),
        ("output chain", {"output_chain": bytes(32)}),
        ("time", {"decided_at": 0}),
    ],
)
def test_a_head_that_says_otherwise_is_named(name: str, changed: dict[str, object]) -> None:
    rows, contents, head = write(1)
    reached = walk(rows, contents)
    assert isinstance(reached, Head)
    fault = find_wrong_head(reached, replace(head, **changed))  # type: ignore[arg-type]
    assert fault is not None
    assert fault.what.startswith(f"the head's {name} is ")


def test_a_producer_that_nobody_has_taken_yet_makes_no_difference() -> None:
    rows, contents, head = write(1)
    reached = walk(rows, contents)
    assert isinstance(reached, Head)
    assert find_wrong_head(reached, replace(head, vector={**head.vector, ProducerNumber(7): Serial(0)})) is None


def test_an_order_that_cannot_be_decoded_is_told_as_such() -> None:
    rows, _, _ = write(1, (5,))
    short = replace(rows[0], first_serials=rows[0].first_serials[:-1])
    content = content_of(short, {}, {})
    assert content.taken is None
    assert content.problem == "its order cannot be decoded: it has 2 producers and 1 first serials"
