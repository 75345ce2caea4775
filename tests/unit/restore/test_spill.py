"""Records that wait on the local disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from property.logs import ListLog, values_in_order, values_of
from zerotail.core.identity import ProducerNumber
from zerotail.core.order import Order, Runs
from zerotail.core.restoration import CacheLimit, bounded
from zerotail.errors import Misused
from zerotail.restore.spill import SpillFolder

pytestmark = pytest.mark.fast

A, B = ProducerNumber(1), ProducerNumber(2)


def batch(*values: bytes) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.binary())})


def test_what_was_put_is_taken_in_the_same_order_while_more_is_put(tmp_path: Path) -> None:
    spill = SpillFolder(tmp_path)
    assert spill.take(A) is None
    spill.put(A, batch(b"1", b"2"))
    spill.put(B, batch(b"x"))
    assert spill.take(A) == batch(b"1", b"2")
    assert spill.take(A) is None
    spill.put(A, batch(b"3"))
    spill.put(A, batch(b"4"))
    assert [spill.take(A), spill.take(A), spill.take(A)] == [batch(b"3"), batch(b"4"), None]
    assert spill.take(B) == batch(b"x")


def test_nothing_is_left_in_the_folder_even_while_it_is_used(tmp_path: Path) -> None:
    spill = SpillFolder(tmp_path)
    spill.put(A, batch(b"1"))
    assert list(tmp_path.iterdir()) == []
    assert spill.take(A) == batch(b"1")


def test_a_restoration_that_spills_gives_the_same_sequence(tmp_path: Path) -> None:
    order = Order(Runs.of([(A, 1), (B, 1)] * 400))
    log = ListLog([(int(producer), serial) for producer in (B, A) for serial in range(1, 401)], [50])
    restored = bounded(order, log, CacheLimit(20, 10**6), SpillFolder(tmp_path))
    assert values_of(restored) == values_in_order(order)
    assert (restored.statistics.reads, restored.statistics.spilled) == (1.0, 400)
    assert restored.statistics.peak_cache_messages <= 20


def test_a_folder_that_is_none_is_misused(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="no folder that can be written to") as misused:
        SpillFolder(tmp_path / "nowhere")
    assert misused.value.code == "ZT148"


def test_records_that_passed_while_nothing_was_spilled_are_not_missed_later(tmp_path: Path) -> None:
    order = Order(Runs.of([(A, 1), (B, 3), (A, 2), (B, 1)]))
    # B waits outside, comes back, passes in order, and waits again.
    log = ListLog([(2, 1), (1, 1), (2, 2), (2, 3), (2, 4), (1, 2), (1, 3)], [1])
    restored = bounded(order, log, CacheLimit(0, 10**6), SpillFolder(tmp_path))
    assert values_of(restored) == values_in_order(order)
    assert (restored.statistics.reads, restored.statistics.spilled) == (1.0, 2)
