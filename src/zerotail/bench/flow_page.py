"""The section of `docs/benchmarks.md` about the flow, made from a result and from nothing else; and its goals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from zerotail.bench.goals import Goal, table_of
from zerotail.bench.page import put_section
from zerotail.bench.result import FlowBench, FlowResult
from zerotail.bench.stored import Stored, told_stamps

NAME = "bench flow"
TARGET_RECORDS_PER_SECOND = 30_000
TARGET_RATIO = 0.6
TARGET_P50_SECONDS = 1.0


def write_page(stored: Stored[FlowBench], page: Path) -> None:
    """Put the section into the page."""
    put_section(page, NAME, section_of(stored))


def goals_of(cases: Sequence[FlowResult]) -> Iterator[Goal]:
    """Three for each number of partitions."""
    for case in cases:
        where = "1 partition" if case.partitions == 1 else f"{case.partitions} partitions"
        speed, ratio, p50 = case.records_per_second, case.ratio, case.latency_p50_seconds
        yield Goal(
            f"records_per_second-{case.partitions}",
            f"{where}: {TARGET_RECORDS_PER_SECOND:,} records/s end to end",
            f"{speed:,.0f}",
            speed >= TARGET_RECORDS_PER_SECOND,
        )
        yield Goal(
            f"ratio-{case.partitions}", f"{where}: {TARGET_RATIO} of plain Spark", f"{ratio:.2f}", ratio >= TARGET_RATIO
        )
        yield Goal(
            f"latency_p50_seconds-{case.partitions}",
            f"{where}: half of all messages outside after at most {TARGET_P50_SECONDS:g} s, at "
            f"{case.latency_records_per_second:,.0f}/s",
            f"{p50:.2f} s",
            p50 <= TARGET_P50_SECONDS,
        )


def section_of(stored: Stored[FlowBench]) -> str:
    """The tables, in Markdown."""
    cases = stored.result.cases
    lines = ["## Flow", "", *told_stamps(stored), "", *_introduction(cases), "", *table_of(goals_of(cases)), ""]
    return "\n".join([*lines, *_cases(cases), "", *_rounds(cases)]) + "\n"


def _introduction(cases: Sequence[FlowResult]) -> Iterator[str]:
    sizes = ", ".join(dict.fromkeys(f"{case.count:,}" for case in cases))
    yield (
        f"From instruction rows to the receiver, both sites on this machine: {sizes} rows a round are inserted inside "
        "the measured window, which ends when the receiver has the last message. Plain Spark does the same work in the "
        "same lab, in turns: the same transform, handler, state and receiver, without journal, gate and outbox. The "
        "ratio is taken within each round; the figures are medians over the rounds. Latency is from a moment before a "
        "row's commit to the receiver, at a fixed rate, of our pipeline."
    )


def _cases(cases: Sequence[FlowResult]) -> Iterator[str]:
    yield "| partitions | rounds | records/s | plain Spark | ratio | latency at | p50 | p99 |"
    yield "|" + "---|" * 8
    for case in cases:
        yield (
            f"| {case.partitions} | {len(case.rounds)} | {case.records_per_second:,.0f} | "
            f"{case.baseline_records_per_second:,.0f} | {case.ratio:.2f} | {case.latency_records_per_second:,.0f}/s | "
            f"{case.latency_p50_seconds:.2f} s | {case.latency_p99_seconds:.2f} s |"
        )


def _rounds(cases: Sequence[FlowResult]) -> Iterator[str]:
    """What the medians are made of: how noisy the machine was shows here."""
    for case in cases:
        rounds = "; ".join(
            f"{one['records_per_second']:,.0f} and {one['baseline_records_per_second']:,.0f} ({one['ratio']:.2f})"
            for one in case.rounds
        )
        yield f"Each round with {case.partitions} of them, ours and plain Spark: {rounds}."
