"""What is planned of a producer that stands at a row: nothing behind it, and a decided row has a range of its own."""

from __future__ import annotations

from typing import Any

import pytest

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.postgres.feed import FeedPlace
from zerotail.spark.instruction_source import InstructionReader

pytestmark = pytest.mark.fast

LAST = 20


class Database:
    """Twenty rows without a gap."""

    def read(self, _work: object) -> int:
        return LAST


def plan(
    monkeypatch: pytest.MonkeyPatch, first: int, *, stands: int | None = None, decided: tuple[int, ...] = ()
) -> dict[str, Any]:
    reader = InstructionReader({"dsn": "", "producers": "cards"})
    monkeypatch.setattr(reader, "_database", Database)
    place = FeedPlace(
        ProducerNumber(1),
        PartitionNumber(0),
        StageName("settle"),
        Serial(4),
        0,
        numbered=False,
        stopped=False,
        last=Serial(LAST),
        waiting=False,
        stands=None if stands is None else Serial(stands),
        decided=[Serial(serial) for serial in decided],
    )
    return reader._plan(place, {"first": 1, "next": first, "again": 0})


@pytest.mark.parametrize(
    ("first", "stands", "decided", "planned"),
    [
        (5, None, (), (5, 21)),
        (5, 9, (), (5, 9)),
        (15, 9, (), (9, 9)),
        (9, 9, (), (1, 9)),
        (5, None, (9,), (5, 9)),
        (9, None, (9, 12), (9, 10)),
        (10, None, (9, 12), (10, 12)),
        (12, 13, (9, 12), (12, 13)),
        (13, 13, (9, 12), (1, 13)),
    ],
)
def test_ranges_end_at_the_door(
    monkeypatch: pytest.MonkeyPatch, first: int, stands: int | None, decided: tuple[int, ...], planned: tuple[int, int]
) -> None:
    found = plan(monkeypatch, first, stands=stands, decided=decided)
    assert (found["first"], found["next"]) == planned
    assert ("decided" in found) is (found["first"] in decided)
