"""What restores are to reach, over all cells, and what was found.

A restore of every day hashes every value (`--check values`); most cells are measured with `--check headers`, which does
not. So there is a goal for either: the one that a user gets comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zerotail.bench.goals import Goal
from zerotail.bench.restore_result import RefillMeasured, RestoreCase, RestoreRow, SparkMeasured

FITTING_RATIO = 1.25
REFILL_RATIO = 0.7
SPARK_RATIO = 1.15
_ONE_READ = 1.01


def goals_of(
    cases: Sequence[RestoreCase], refill: RefillMeasured | None, spark: SparkMeasured | None
) -> Iterator[Goal]:
    """Each over all cases."""
    cells = [(case, row) for case in cases for row in case.rows]
    ours = [(case, row) for case, row in cells if row.method in ("unbounded", "bounded")]
    fitting = [row for _, row in ours if row.reads < _ONE_READ]
    finished = sum(row.finished for _, row in ours)
    yield Goal("every_cell_finished", "every restore finishes", f"{finished} of {len(ours)}", finished == len(ours))
    yield from _fitting("fitting_checked", "values`, the default", [row for _, row in cells if row.method == "checked"])
    yield from _fitting("fitting", "headers`", fitting)
    yield _others([(case, row) for case, row in ours if row.reads >= _ONE_READ])
    yield _cache(cases)
    if refill is not None:
        yield Goal(
            "refill_ratio",
            f"the ordered refill writes at least {REFILL_RATIO:.0%} as fast as a plain producer",
            f"{refill.ratio.median:.0%}",
            refill.ratio.median >= REFILL_RATIO,
        )
    if spark is not None:
        yield Goal(
            "spark_ratio",
            f"through Spark at most {SPARK_RATIO} times a plain read through Spark",
            f"{spark.ratio.median:.2f}",
            spark.ratio.median <= SPARK_RATIO,
        )


def _fitting(name: str, check: str, rows: Sequence[RestoreRow]) -> Iterator[Goal]:
    if not rows:
        return
    wanted = f"with `--check {check}, at most {FITTING_RATIO} times a plain read when the disorder fits the cache"
    for suffix, words, ratios in (
        ("_ratio", "by the clock", [row.ratio.median for row in rows]),
        ("_cpu_ratio", "of processor time", [row.cpu_ratio.median for row in rows]),
    ):
        missed = sum(ratio > FITTING_RATIO for ratio in ratios)
        found = f"{missed} of {len(ratios)} cells miss it; {min(ratios):.2f} to {max(ratios):.2f}"
        yield Goal(name + suffix, f"{wanted}, {words}", found, not missed)


def _others(others: Sequence[tuple[RestoreCase, RestoreRow]]) -> Goal:
    missed = sum(row.ratio.median > 1 + case.producers for case, row in others)
    found = f"{missed} of {len(others)} cells miss it"
    wanted = "otherwise, with `--check headers`, at most 1 + number of producers times a plain read"
    return Goal("other_ratio", wanted, found, not missed)


def _cache(cases: Sequence[RestoreCase]) -> Goal:
    """The limit is a number of messages; what the process takes besides is told beside it."""
    bounded, over, grew = 0, 0, 0
    for case in cases:
        free = [row.peak_memory_bytes for row in case.rows if row.method == "unbounded"]
        for row in case.rows:
            if row.method == "bounded" and row.cache is not None:
                bounded += 1
                over += row.peak_cache > row.cache
                grew += bool(free) and row.peak_memory_bytes > free[0]
    found = (
        f"{over} of {bounded} cells hold more. The limit counts messages and not memory: {grew} of these {bounded} "
        "processes grew by more than that of the restore without a limit over the same log"
    )
    return Goal("cache_within_limit", "the cache never holds more messages than `--cache`", found, not over)
