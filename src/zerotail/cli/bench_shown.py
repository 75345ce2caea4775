"""What benchmarks found, as screens of text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from zerotail.cli.output import tick

if TYPE_CHECKING:
    from zerotail.bench.result import ChecksCost, FlowBench, FlowResult, JournalCost, MirrorResult, TakeoverResult


def told_mirror(found: MirrorResult) -> str:
    """A line for each number of partitions, one for the lag, one for what arrived."""
    lines = []
    for partitions, ratio in found.ratios.items():
        spark, maker, tuned = (
            found.records_per_second[f"{engine}-{partitions}"] for engine in ("spark", "mm2", "mm2-tuned")
        )
        sign = tick(found.reached[f"ratio-{partitions}"], sys.stdout)
        lines.append(
            f"{sign} {ratio:.2f} times MirrorMaker 2 with exactly-once on {partitions} partitions (wanted 2.00): "
            f"{spark:,.0f} and {maker:,.0f} records/s; {found.ratios_tuned[partitions]:.2f} times one with our client "
            f"settings: {tuned:,.0f}; {found.ratios_interval[partitions]:.2f} times that with a transaction a second"
        )
    lines.append(
        f"{tick(found.reached['lag'], sys.stdout)} {found.lag_p99_seconds:.2f} s lag, p99, at "
        f"{found.lag_records_per_second:,.0f} records/s (wanted 2.00)"
    )
    lines.append(f"{tick(found.reached['complete'], sys.stdout)} every record once and in order, in every round")
    return "\n".join(lines)


def told_takeover(found: TakeoverResult) -> str:
    """A line for each figure."""
    reached = {name: tick(value, sys.stdout) for name, value in found.reached.items()}
    lengths = ", ".join(f"{int(history):,}: {seconds:.2f} s" for history, seconds in found.medians_by_history.items())
    growth = f"{found.growth:.2f} times as long with the longest history ({lengths})"
    return "\n".join(
        [
            f"{reached['takeover_seconds_median']} {found.takeover_seconds_median:.2f} s median from the command to "
            f"the first new message (wanted 2.00), {len(found.rounds)} takeovers, {found.strategy}",
            f"{reached['takeover_seconds_worst']} {found.takeover_seconds_worst:.2f} s the worst (wanted 5.00)",
            *([f"{reached['flat']} {growth}"] if "flat" in reached else []),
            f"{reached['exactly_once']} {found.lost} lost, {found.duplicated} duplicated, counted by the receiver",
            *(
                f"  beside it, plain MirrorMaker 2: {one.lost:,} of {one.submitted:,} lost, {one.duplicated:,} "
                f"duplicated, first new message {one.takeover_seconds:.2f} s after the command"
                for one in found.mirrored
            ),
        ]
    )


def told_flow(found: FlowBench) -> str:
    """Four lines for each number of partitions."""
    return "\n".join(_told_case(case, found.reached) for case in found.cases)


def _told_case(case: FlowResult, all_reached: dict[str, bool]) -> str:
    speed, ratio, p50 = (
        tick(all_reached[f"{name}-{case.partitions}"], sys.stdout)
        for name in ("records_per_second", "ratio", "latency_p50_seconds")
    )
    return "\n".join(
        [
            f"{speed} {case.records_per_second:>10,.0f} records/s end to end with {case.partitions} "
            f"{'partition' if case.partitions == 1 else 'partitions'} (wanted 30,000)",
            f"  {case.baseline_records_per_second:>10,.0f} records/s on plain Spark, the same work",
            f"{ratio} {case.ratio:>10.2f} of plain Spark (wanted 0.60)",
            f"{p50} {case.latency_p50_seconds:>8.2f} s p50 from row to receiver at "
            f"{case.latency_records_per_second:,.0f}/s (wanted 1.00 s); p99 {case.latency_p99_seconds:.2f} s",
        ]
    )


def told_checks(found: ChecksCost) -> str:
    """What the checks cost."""
    return "\n".join(
        [
            f"{tick(all(found.reached.values()), sys.stdout)} {found.processor_percent:.1f} % more processor time with "
            "the checks (wanted 3)",
            f"  {found.throughput_percent:.1f} % fewer records a second, over {len(found.rounds)} rounds of "
            f"{found.count:,}",
        ]
    )


def told_journal(found: JournalCost) -> str:
    """Bytes and time."""
    return "\n".join(
        [
            f"{tick(all(found.reached.values()), sys.stdout)} {found.bytes_per_message:.2f} bytes of WAL per message "
            f"at {found.messages_per_segment:,} messages per segment (wanted 1.00), "
            f"{found.bytes_per_message_without_page_images:.2f} without page images",
            f"  {found.row_per_message_bytes:.0f} bytes with one row per message",
            f"  {found.seconds_per_message * 1e6:.2f} µs per message, {found.row_per_message_seconds * 1e6:.2f} µs "
            "with one row per message",
        ]
    )
