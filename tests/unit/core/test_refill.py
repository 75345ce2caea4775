"""The ordered refill."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from zerotail.core.identity import ProducerNumber, Serial
from zerotail.core.order import Order, Runs
from zerotail.core.refill import merge_sources
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

A, B = ProducerNumber(1), ProducerNumber(2)


class Source(Iterator[pa.RecordBatch]):
    """One producer's values, in batches; it knows how many were asked for."""

    def __init__(self, *batches: list[str]) -> None:
        self.batches = [*batches]
        self.asked = 0

    def __next__(self) -> pa.RecordBatch:
        self.asked += 1
        if not self.batches:
            raise StopIteration
        return pa.record_batch({"value": pa.array(self.batches.pop(0), type=pa.string())})


def values(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_sources_are_merged_into_the_order_of_the_journal() -> None:
    order = Order(Runs.of([(A, 2), (B, 2), (A, 1)]))
    sources = {A: Source(["a1"], [], ["a2", "a3"]), B: Source(["b1", "b2"])}
    assert values(merge_sources(order, sources)) == ["a1", "a2", "b1", "b2", "a3"]


def test_a_source_is_read_on_only_when_its_producer_is_next() -> None:
    order = Order(Runs.of([(A, 3), (B, 1), (A, 1)]))
    sources = {A: Source(["a1", "a2"], ["a3"], ["a4"]), B: Source(["b1"])}
    merged = merge_sources(order, sources)
    assert (next(merged).num_rows, sources[A].asked, sources[B].asked) == (2, 1, 0)
    assert (next(merged).num_rows, sources[A].asked, sources[B].asked) == (1, 2, 0)
    assert (next(merged).num_rows, sources[A].asked, sources[B].asked) == (1, 2, 1)
    assert values(merged) == ["a4"]
    assert (sources[A].asked, sources[B].asked) == (3, 1)


def test_what_a_source_has_behind_the_orders_end_is_left() -> None:
    order = Order(Runs.of([(A, 1)]), before={B: Serial(4)})
    assert values(merge_sources(order, {A: Source(["a1", "a2"]), B: Source(["b5"])})) == ["a1"]


@pytest.mark.parametrize("sources", [{}, {B: Source()}, {B: Source([], ["b6"])}])
def test_a_record_that_no_source_gives_is_refused_by_name(sources: dict[ProducerNumber, Source]) -> None:
    order = Order(Runs.of([(B, 2)]), before={B: Serial(5)})
    serial = 7 if sources and sources[B].batches else 6
    with pytest.raises(Refused, match=rf"record \(producer 2, serial {serial}\), at position {serial - 6} of"):
        values(merge_sources(order, sources))
