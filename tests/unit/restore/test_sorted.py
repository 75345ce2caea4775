"""The two tasks of the sort, without Spark between them: positions computed, ranges proven, what is missing named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from support.disasters import EPOCH, Name, make_day, refill_by_others, value_of
from zerotail.core.installation import UNMARKED
from zerotail.core.record import digest_column, encode_column
from zerotail.errors import Broken, Refused
from zerotail.spark import restoring

pytestmark = pytest.mark.fast

DAY = make_day(5, 900, producers=3)
RECORDED = SimpleNamespace(journal=DAY.journal, limits={EPOCH: None}, installation=UNMARKED)
PLACES: Any = {0: None}
LOG = refill_by_others(4, DAY.taken, repeats=0.3)
BY_PLACE = [(name, "ascending") for name in ("partition", "range", "position")]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "_SEGMENTS_PER_RANGE", 3)
    monkeypatch.setattr(restoring, "read_recorded", lambda _place: RECORDED)
    monkeypatch.setattr(restoring, "settle_worker", lambda: None)


def arriving(names: Sequence[Name], changed: Name | None, rows: int = 700) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(names), rows):
        some = names[first : first + rows]
        values = [b"another" if name == changed else value_of(name) for name in some]
        digests = digest_column(pa.array([value_of(name) for name in some], pa.binary()))
        yield pa.record_batch(
            {
                "partition": pa.array([0] * len(some), pa.int32()),
                "zt": encode_column(EPOCH, [name[0] for name in some], [name[1] for name in some], digests),
                "offset": list(range(first, first + len(some))),
                "value": pa.array(values, pa.binary()),
            }
        )


def sort(names: Sequence[Name], rows: int = 131, changed: Name | None = None) -> Iterator[pa.RecordBatch]:
    """What Spark does between the tasks; batches of so many rows reach the second."""
    placed = [*restoring._placed(PLACES, arriving(names, changed))]
    ranges = range(1, len(restoring._range_starts(RECORDED)) + 1)  # type: ignore[arg-type]
    heads = [{"partition": 0, "range": number, "position": -1, "zt": None, "value": None} for number in ranges]
    every = [*placed, pa.RecordBatch.from_pylist(heads, placed[0].schema)]
    table = pa.Table.from_batches(every).sort_by(BY_PLACE).combine_chunks()
    return restoring._proven(PLACES, iter(table.to_batches(max_chunksize=rows)), True)


@pytest.mark.parametrize("rows", [2, 7, 131, 5_000])
def test_the_records_come_out_in_journal_order_each_once(rows: int) -> None:
    found = [
        (producer, serial, value)
        for batch in sort(LOG, rows)
        for producer, serial, value in zip(
            *(batch.column(name).to_pylist() for name in ("producer", "serial", "value")), strict=True
        )
    ]
    assert found == [(*name, value_of(name)) for name in DAY.taken]


@pytest.mark.parametrize(("first", "end"), [(0, 3), (6, 9), (7, 8), (30, 33)])
def test_whole_segments_that_are_missing_are_missed_even_where_no_record_of_their_range_is_left(
    first: int, end: int
) -> None:
    segments = DAY.journal.segments
    position = segments[first].first_position
    gone = {*DAY.taken[position : segments[end - 1].next_position]}
    producer, serial = DAY.taken[position]
    with pytest.raises(Refused, match=rf"producer {producer}, serial {serial}\), at position {position} of"):
        list(sort([name for name in LOG if name not in gone]))


def test_nothing_of_a_segment_leaves_before_it_is_proven() -> None:
    position = DAY.journal.segments[20].first_position + 1
    left: list[int] = []
    with pytest.raises(Broken, match=f"at position {position} of"):
        left.extend(batch.num_rows for batch in sort(LOG, rows=5, changed=DAY.taken[position]))
    assert 0 < sum(left) <= DAY.journal.segments[20].first_position
