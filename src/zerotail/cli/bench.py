"""`zerotail bench`: what it costs, measured on real servers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zerotail.cli.output import json_option, print_answer, print_json, say, tick

if TYPE_CHECKING:
    from zerotail.bench.result import FlowResult, JournalCost, TakeoverResult


@click.group("bench", epilog="Example:  zerotail bench flow --rounds 3")
def command() -> None:
    """What it costs, measured on real servers; each ratio is taken in one run on one machine."""


@command.command("flow", epilog="Example:  zerotail bench flow --count 1000000 --rounds 3 --json")
@click.option("--count", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Instructions a round.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds of each pipeline.")
@click.option("--accounts", type=click.IntRange(1), default=20_000, show_default=True, help="Distinct keys.")
@click.option("--partitions", type=click.IntRange(1, 64), default=1, show_default=True, help="Of the topic.")
@click.option("--rate", type=click.FloatRange(1), default=10_000, show_default=True, help="For latency, a second.")
@click.option(
    "--latency-seconds", type=click.FloatRange(1), default=20, show_default=True, help="How long at that rate."
)
@json_option
def bench_flow(
    count: int, rounds: int, accounts: int, partitions: int, rate: float, latency_seconds: float, as_json: bool
) -> int:
    """Records per second from instruction rows to the receiver, against plain Spark; latency at a fixed rate.

    Brings up two sites of its own and takes them down again. Exits with 1 when a figure is not reached.
    """
    from zerotail.bench.flow import FlowSettings
    from zerotail.bench.flow import bench_flow as measure

    settings = FlowSettings(count, rounds, accounts, partitions, rate, latency_seconds)
    found = measure(settings, lambda line: say(f"bench flow: {line}"))
    if as_json:
        print_json("bench-flow", found)
    else:
        print_answer(_told_flow(found))
    return 0 if all(found.reached.values()) else 1


@command.command("journal", epilog="Example:  zerotail bench journal --records 1000")
@click.option("--segments", type=click.IntRange(1), default=200, show_default=True, help="How many are committed.")
@click.option("--records", type=click.IntRange(1), default=1000, show_default=True, help="Messages in each.")
@json_option
def bench_journal(segments: int, records: int, as_json: bool) -> int:
    """Bytes of WAL per message for the order journal alone, against one row per message."""
    from zerotail.bench.journal import measure_journal
    from zerotail.lab.database import dsn
    from zerotail.lab.layout import LabSettings
    from zerotail.lab.up import temporary_lab

    say("bench journal: bringing up two sites")
    with temporary_lab(LabSettings) as layout:
        found = measure_journal(dsn(layout.database("east")), segments, records)
    if as_json:
        print_json("bench-journal", found)
    else:
        print_answer(_told_journal(found))
    return 0 if found.reached else 1


@command.command("takeover", epilog="Example:  zerotail bench takeover --history 100000 --rounds 10")
@click.option(
    "--history", default="100000,1000000,10000000", show_default=True, help="Instructions before, several by commas."
)
@click.option("--rounds", type=click.IntRange(1), default=10, show_default=True, help="Takeovers for each history.")
@click.option("--rate", type=click.FloatRange(1, 50_000), default=500, show_default=True, help="Instructions a second.")
@click.option("--strategy", type=click.Choice(["skip", "follower", "auto"]), default="auto", show_default=True)
@json_option
def bench_takeover(history: str, rounds: int, rate: float, strategy: str, as_json: bool) -> int:
    """Seconds from the takeover command to the first new message outside, with a warm standby.

    Brings up two sites of its own, kills the active one again and again, and takes both down. Exits with 1 when a
    figure is not reached.
    """
    from zerotail.bench.takeover import TakeoverSettings
    from zerotail.bench.takeover import bench_takeover as measure
    from zerotail.errors import Misused

    lengths = history.replace("_", "").split(",")
    if not all(length.strip().isdigit() for length in lengths):
        raise Misused(f"--history is a list of numbers, not {history!r}.", tries=["--history 100000,1000000"])
    settings = TakeoverSettings(tuple(map(int, lengths)), rounds, rate, strategy)
    found = measure(settings, lambda line: say(f"bench takeover: {line}"))
    if as_json:
        print_json("bench-takeover", found)
    else:
        print_answer(_told_takeover(found))
    return 0 if all(found.reached.values()) else 1


@command.command("durability", epilog="Example:  zerotail bench durability --quick")
@click.option("--quick", is_flag=True, help="Two kills of a leader instead of everything: half a minute, not ten.")
@click.option("--fault", "faults", multiple=True, metavar="NAME", help="This fault only; may be given again.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the moments of the faults.")
@json_option
def bench_durability(quick: bool, faults: tuple[str, ...], seed: int, as_json: bool) -> int:
    """Acknowledged records that are lost: acks, min.insync.replicas and unclean election against eight faults.

    Brings up three brokers of its own, kills and freezes them again and again, and takes them down. Exits with 1
    when something was lost where nothing may be lost, or the run proves too little.
    """
    from dataclasses import replace

    from zerotail.cli.durability_shown import told_durability
    from zerotail.drill.durability.run import QUICK, WHOLE, only, run_durability

    settings = replace(only(faults) if faults else QUICK if quick else WHOLE, seed=seed)
    found = run_durability(settings, lambda line: say(f"bench durability: {line}"))
    if as_json:
        print_json("bench-durability", found)
    else:
        print_answer(told_durability(found))
    return 0 if found.verdict == "passed" and (quick or all(found.reached.values())) else 1


def _told_takeover(found: TakeoverResult) -> str:
    reached = {name: tick(value, sys.stdout) for name, value in found.reached.items()}
    lengths = ", ".join(f"{int(history):,}: {seconds:.2f} s" for history, seconds in found.medians_by_history.items())
    return "\n".join(
        [
            f"{reached['takeover_seconds_median']} {found.takeover_seconds_median:.2f} s median from the command to "
            f"the first new message (wanted 2.00), {len(found.rounds)} takeovers, {found.strategy}",
            f"{reached['takeover_seconds_worst']} {found.takeover_seconds_worst:.2f} s the worst (wanted 5.00)",
            f"{reached['flat']} {found.growth:.2f} times as long with the longest history ({lengths})",
        ]
    )


def _told_flow(found: FlowResult) -> str:
    reached = {name: tick(value, sys.stdout) for name, value in found.reached.items()}
    return "\n".join(
        [
            f"{reached['records_per_second']} {found.records_per_second:>10,.0f} records/s end to end (wanted 30,000)",
            f"  {found.baseline_records_per_second:>10,.0f} records/s on plain Spark, the same work",
            f"{reached['ratio']} {found.ratio:>10.2f} of plain Spark (wanted 0.60)",
            f"{reached['latency_p50_seconds']} {found.latency_p50_seconds:>8.2f} s p50 from row to receiver at "
            f"{found.latency_records_per_second:,.0f}/s (wanted 1.00 s); p99 {found.latency_p99_seconds:.2f} s",
        ]
    )


def _told_journal(found: JournalCost) -> str:
    return "\n".join(
        [
            f"{tick(found.reached, sys.stdout)} {found.bytes_per_message:.2f} bytes of WAL per message at "
            f"{found.messages_per_segment:,} messages per segment (wanted 1.00), "
            f"{found.bytes_per_message_without_page_images:.2f} without page images",
            f"  {found.row_per_message_bytes:.0f} bytes with one row per message",
            f"  {found.seconds_per_message * 1e6:.2f} µs per message, {found.row_per_message_seconds * 1e6:.2f} µs "
            "with one row per message",
        ]
    )
