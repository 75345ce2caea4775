"""Positions of groups, looked up in the log of the target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.provenance import Origin, Provenance
from zerotail.mirror.offsets import _from
from zerotail.mirror.translation import find_first

pytestmark = pytest.mark.fast

EAST = Origin("east", TopicName("audit"), bytes(16), PartitionNumber(0))
HUB = Origin("hub", TopicName("audit"), bytes(16), PartitionNumber(0))
MINE = _from("east", (TopicName("audit"), PartitionNumber(0)))


class FakeLog:
    """A log of the target: offsets with gaps, some copies, some records of others."""

    def __init__(self, records: list[tuple[int, Provenance | None]], begin: int, end: int) -> None:
        self._records = records
        self._bounds = (Offset(begin), Offset(end))
        self.reads = 0

    def bounds(self) -> tuple[Offset, Offset]:
        return self._bounds

    def records(self, start: Offset) -> Iterator[tuple[Offset, Provenance | None]]:
        self.reads += 1
        return ((Offset(offset), one) for offset, one in self._records if offset >= start)


def copies(*pairs: tuple[int, int]) -> list[tuple[int, Provenance | None]]:
    return [(offset, Provenance(EAST, Offset(source))) for offset, source in pairs]


@pytest.mark.parametrize(("wanted", "found"), [(0, (10, 0)), (5, (11, 7)), (7, (11, 7)), (8, (20, None))])
def test_a_group_goes_on_at_the_first_copy_that_it_has_not_read(wanted: int, found: tuple[int, int | None]) -> None:
    log = FakeLog(copies((10, 0), (11, 7)), 10, 20)
    assert find_first(log, Offset(wanted), MINE) == found


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=300),
    st.lists(st.integers(1, 300), min_size=1, max_size=300),
    st.integers(0, 900),
    st.randoms(use_true_random=False),
)
def test_the_search_finds_what_reading_everything_finds(
    source_steps: list[int], target_steps: list[int], wanted: int, random: object
) -> None:
    records: list[tuple[int, Provenance | None]] = []
    source, target = 0, 0
    for source_step, target_step in zip(source_steps, target_steps, strict=False):
        source, target = source + source_step, target + target_step
        records += [(target, Provenance(EAST, Offset(source)))]
        if source % 3 == 0:
            target += 1
            records += [(target, Provenance(HUB, Offset(source * 7)) if source % 2 else None)]
    log = FakeLog(records, 0, target + 1)
    expected = next(
        ((o, p.offset) for o, p in records if p and p.origin == EAST and p.offset >= wanted), (target + 1, None)
    )
    assert find_first(log, Offset(wanted), MINE) == expected


def test_a_long_log_is_searched_with_few_looks() -> None:
    log = FakeLog(copies(*((n, 2 * n) for n in range(200_000))), 0, 200_000)
    assert find_first(log, Offset(123_457), MINE) == (61_729, 123_458)
    assert log.reads < 12
