"""The section of `docs/benchmarks.md` about mirrors, made from a result and from nothing else; and its goals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from zerotail.bench.goals import Goal, table_of
from zerotail.bench.page import put_section
from zerotail.bench.result import MirrorResult
from zerotail.bench.stored import Stored, told_stamps

NAME = "bench mirror"
RATIO = 2.0
LAG_P99_SECONDS = 2.0
_ENGINES = {
    "spark": "Spark mirror",
    "mm2": "MirrorMaker 2, exactly-once, Kafka's own client settings",
    "mm2-tuned": "MirrorMaker 2, exactly-once, the settings of `zerotail mirror generate`",
    "mm2-interval": "the same with `transaction.boundary=interval`, a transaction a second",
}


def write_page(stored: Stored[MirrorResult], page: Path) -> None:
    """Put the section into the page."""
    put_section(page, NAME, section_of(stored))


def goals_of(found: MirrorResult) -> Iterator[Goal]:
    """For each number of partitions, and over all."""
    for partitions, ratio in found.ratios.items():
        where = "1 partition" if partitions == "1" else f"{partitions} partitions"
        yield Goal(
            f"ratio-{partitions}",
            f"{where}: {RATIO:g} times MirrorMaker 2 with Kafka's own client settings",
            f"{ratio:.2f} times",
            ratio >= RATIO,
        )
    yield Goal(
        "lag",
        f"a lag of at most {LAG_P99_SECONDS:g} s at half of the reached rate, 99 in 100 records",
        f"{found.lag_p99_seconds:.2f} s at {found.lag_records_per_second:,.0f} records/s",
        found.lag_p99_seconds <= LAG_P99_SECONDS,
    )
    complete = sum(bool(one["complete"]) for one in found.rounds)
    yield Goal(
        "complete",
        "the same records in the same order at both ends, by a checksum over all values, in every round",
        f"{complete} of {len(found.rounds)} rounds",
        complete == len(found.rounds),
    )


def section_of(stored: Stored[MirrorResult]) -> str:
    """The tables, in Markdown."""
    found = stored.result
    lines = ["## Mirror", "", *told_stamps(stored), "", *_introduction(found), "", *table_of(goals_of(found)), ""]
    return "\n".join([*lines, *_engines(found), "", *_beside(found)]) + "\n"


def _introduction(found: MirrorResult) -> Iterator[str]:
    yield (
        f"{found.count:,} records of {found.size} bytes a round, both brokers on this machine, the engines in turn in "
        "one run, start-up apart; medians over the rounds. Processor time is that of the engine's processes."
    )


def _engines(found: MirrorResult) -> Iterator[str]:
    counts = [*found.ratios]
    heads = [f"records/s, {count} {'partition' if count == '1' else 'partitions'}" for count in counts]
    yield f"| engine | {' | '.join(heads)} | µs of processor time per record |"
    yield "|" + "---|" * (len(counts) + 2)
    for engine, name in _ENGINES.items():
        rates = " | ".join(f"{found.records_per_second[f'{engine}-{count}']:,.0f}" for count in counts)
        costs = ", ".join(f"{found.cpu_microseconds[f'{engine}-{count}']:.1f}" for count in counts)
        yield f"| {name} | {rates} | {costs} |"


def _beside(found: MirrorResult) -> Iterator[str]:
    words = [
        f"with {partitions} {'partition' if partitions == '1' else 'partitions'} {plain:.1f} times the first, "
        f"{found.ratios_tuned[partitions]:.1f} times the second, {found.ratios_interval[partitions]:.1f} times the "
        "third"
        for partitions, plain in found.ratios.items()
    ]
    yield (
        f"The Spark mirror is, of these three MirrorMaker 2s, {'; '.join(words)}. MirrorMaker 2 has more settings than "
        "these: nobody claims that any of them is as fast as it can be made."
    )
