"""The section of `docs/benchmarks.md` about the checks, made from a result and from nothing else; and its goal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from zerotail.bench.goals import Goal, table_of
from zerotail.bench.page import put_section
from zerotail.bench.result import ChecksCost
from zerotail.bench.stored import Stored, told_stamps

NAME = "bench checks"
TARGET_PERCENT = 3.0


def write_page(stored: Stored[ChecksCost], page: Path) -> None:
    """Put the section into the page."""
    put_section(page, NAME, section_of(stored))


def goals_of(found: ChecksCost) -> Iterator[Goal]:
    """The one there is."""
    yield Goal(
        "processor_percent",
        f"the checks take at most {TARGET_PERCENT:g} % more processor time",
        f"{found.processor_percent:.1f} %",
        found.processor_percent <= TARGET_PERCENT,
    )


def section_of(stored: Stored[ChecksCost]) -> str:
    """The tables, in Markdown."""
    found = stored.result
    lines = ["## Checks on the way", "", *told_stamps(stored), "", _introduction(found), "", *table_of(goals_of(found))]
    return "\n".join([*lines, "", *_rounds(found)]) + "\n"


def _introduction(found: ChecksCost) -> str:
    return (
        "Each value is compared with the digest of its row before it is applied, and each header with the "
        f"installation. The flow with these checks and without, in turns, in one lab: {found.count:,} rows a round. "
        "Processor time is that of all processes of the pipeline together, and hardly minds what else the machine "
        "does; records a second do. The figures are medians over the rounds."
    )


def _rounds(found: ChecksCost) -> Iterator[str]:
    yield "| round | records/s | without | processor seconds | without | ratio |"
    yield "|" + "---|" * 6
    for number, one in enumerate(found.rounds, 1):
        yield (
            f"| {number} | {one.records_per_second:,.0f} | {one.unchecked_per_second:,.0f} | "
            f"{one.processor_seconds:.1f} | {one.unchecked_processor_seconds:.1f} | {one.processor_ratio:.3f} |"
        )
    yield ""
    yield (
        f"Records a second fell by {found.throughput_percent:.1f} %."
        if found.throughput_percent >= 0
        else f"Records a second did not fall ({-found.throughput_percent:.1f} % more of them with the checks)."
    )
