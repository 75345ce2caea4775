"""The logs that restores are measured on: the same records twice, in the orders that their names say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zerotail.bench.interleaving import KINDS, interleave, serials_of
from zerotail.bench.restore_page import picture_of, section_of, write_page
from zerotail.bench.restore_result import RefillMeasured, RestoreBench, RestoreCase, RestoreRow, SparkMeasured, Spread
from zerotail.bench.stored import Stored
from zerotail.core.order import Runs

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("producers", [2, 4, 16])
def test_both_orders_hold_the_same_records_of_every_producer(kind: str, producers: int) -> None:
    made = interleave(kind, 50_003, producers, seed=1)
    assert len(made.journal) == len(made.log) == 50_003
    assert np.array_equal(np.bincount(made.journal), np.bincount(made.log))
    assert len(np.unique(made.log)) == producers
    assert not np.array_equal(made.journal, made.log)


def test_the_orders_are_what_their_names_say() -> None:
    like_notes = Runs.of_records(interleave("like-notes", 400_000, 2, seed=1).log)
    assert set((like_notes.counts % 10_000).tolist()) == {0}
    fine = Runs.of_records(interleave("fine", 100_000, 2, seed=1).log)
    assert 10 <= fine.counts.mean() <= 30  # neighbours of one producer are one run
    skewed = interleave("skewed", 100_000, 2, seed=1).log
    assert 0.72 <= (skewed[:40_000] == 1).mean() <= 0.78
    one_first = Runs.of_records(interleave("one-first", 1_000, 4, seed=1).log)
    assert (one_first.producers.tolist(), one_first.counts.tolist()) == ([4, 3, 2, 1], [250] * 4)


def test_serials_are_dense_for_each_producer() -> None:
    assert serials_of(np.array([2, 1, 2, 2, 1])).tolist() == [1, 1, 2, 3, 2]


def result() -> RestoreBench:
    def row(method: str, ratio: float, *, finished: bool = True, grew: int = 5_000_000) -> RestoreRow:
        return RestoreRow(
            method=method,
            cache=100,
            seconds=Spread(2.0, 1.9, 2.1),
            ratio=Spread(ratio, ratio, ratio),
            cpu_ratio=Spread(ratio, ratio, ratio),
            polls=7,
            first_hits=600,
            cache_hits=400,
            peak_cache=90,
            cache_ratio=0.09,
            reads=1.0,
            peak_memory_bytes=grew,
            records=1_000 if finished else 120,
            finished=finished,
        )

    bounded = row("bounded", 1.2, grew=6_000_000)
    rows = (row("unbounded", 1.1), bounded, row("checked", 1.3), row("rewinding", 45.0, finished=False))
    case = RestoreCase(1_000, "like-notes", 2, 3, Spread(1.8, 1.7, 1.9), rows)
    rate = Spread(1e5, 1e5, 1e5)
    refill = RefillMeasured(1_000, 3, rate, rate, Spread(1.0, 1.0, 1.0), 1)
    second = Spread(1.0, 1.0, 1.0)
    spark = SparkMeasured(1_000, "like-notes", 3, second, second, second, second)
    return RestoreBench((case,), refill, spark, {"every_cell_finished": True, "fitting_ratio": False})


def test_the_page_says_what_was_reached_and_how_far_a_program_came_that_was_given_up() -> None:
    section = section_of(Stored((), result()))
    assert "| 1 of 1 cells miss it; 1.30 to 1.30 | **not reached** |" in section
    assert "0 of 1 cells hold more" in section
    assert "1 of these 1 processes grew by more" in section, "a limit of messages is none of memory"
    assert "given up after 2, at 12%" in section
    assert section.count("| bounded, `--check headers` |") == 1
    cells = section[section.index("### 1,000 records") :]
    table = [line.count("|") for line in cells.splitlines() if line.startswith("|")]
    assert len(set(table)) == 1, "every line has as many cells as the head has names"


def test_a_page_keeps_what_others_wrote_and_replaces_the_section(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    old = "<!-- bench restore: made by the command -->\nold\n<!-- end of bench restore -->"
    page.write_text(f"# Benchmarks\n\nbefore\n\n{old}\n\nafter\n")
    write_page(Stored((), result()), page)
    text = page.read_text()
    assert text.startswith("# Benchmarks\n\nbefore\n")
    assert text.endswith("after\n")
    assert "old" not in text.split()
    assert (page.parent / "bench-restore.svg").read_text() == picture_of(result())
