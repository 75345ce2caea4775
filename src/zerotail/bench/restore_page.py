"""The section of `docs/benchmarks.md` about restores, and its picture, made from a result and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from zerotail.bench.goals import table_of
from zerotail.bench.page import Bar, draw_bars, picture_name, put_section
from zerotail.bench.restore_goals import goals_of
from zerotail.bench.restore_result import RestoreBench, RestoreCase, RestoreRow, Spread
from zerotail.bench.stored import Stored, told_stamps

NAME = "bench restore"
_METHODS = {
    "unbounded": "unbounded, `--check headers`",
    "bounded": "bounded, `--check headers`",
    "spilled": "bounded, the rest on a local disk, `--check headers`",
    "checked": "unbounded, `--check values`",
    "rested": "a plain read, the collector at rest",
    "dictionary": "the notes' first program",
    "rewinding": "the notes' second program",
}
_COLUMNS = (
    *("method", "cache", "polls", "first hits", "cache hits", "peak cache", "share"),
    *("reads", "time (s)", "ratio", "ratio of CPU", "growth"),
)
_COLOURS = {"checked": "#b0764a", "unbounded": "#2a78b8", "bounded": "#5aa469"}


def write_page(stored: Stored[RestoreBench], page: Path) -> None:
    """Put the section into the page, and the picture beside it."""
    put_section(page, NAME, section_of(stored), picture_of(stored.result))


def section_of(stored: Stored[RestoreBench]) -> str:
    """The section, in Markdown."""
    return "\n".join(["## Restoring order", "", *told_stamps(stored), "", tables_of(stored.result)])


def tables_of(found: RestoreBench) -> str:
    """What was found, in Markdown."""
    lines = [
        *_introduction(),
        "",
        *table_of(goals_of(found.cases, found.refill, found.spark)),
        "",
        *_collector(found),
        f"![time beside a plain read]({picture_name(NAME)})",
        "",
    ]
    for case in found.cases:
        lines += [*_table(case), ""]
    return "\n".join([*lines, *_refill(found), *_spark(found)]).rstrip() + "\n"


def _introduction() -> Iterator[str]:
    yield (
        "Values of 100 bytes; each figure from a process of its own, on a real broker, with the journal in a real "
        "database and every segment proven. *Ratio* is to a plain read of the same topic by the same client in the "
        "same round, which also takes value and header out of every record: by the clock, and of processor time, "
        "which does not depend on who else uses the machine. *Growth* is by how much the process grew, as the "
        "operating system saw it. Several rounds give median (least–most). `zerotail restore` hashes every value "
        "unless it is told otherwise (`--check values`); rows say which of the two they are, "
        "and bounded ones were measured with the headers only. A restore holds Python's "
        "garbage collector back while it takes messages apart; a plain read does not, and what it would gain by that "
        "stands in its own row."
    )


def _collector(found: RestoreBench) -> Iterator[str]:
    """How much of a plain read is the collector."""
    rested = [row.cpu_ratio.median for case in found.cases for row in case.rows if row.method == "rested"]
    if rested:
        yield (
            f"With the collector at rest a plain read takes {min(rested):.2f} to {max(rested):.2f} of its processor "
            f"time: the collector is {1 - max(rested):.0%} to {1 - min(rested):.0%} of it, {1 - median(rested):.0%} "
            "in the middle one of the logs."
        )
        yield ""


def _table(case: RestoreCase) -> Iterator[str]:
    yield (
        f"### {case.records:,} records, {case.producers} producers, {case.interleaving}\n\n"
        f"Plain read {_spread(case.plain_seconds.median, case.plain_seconds.least, case.plain_seconds.most)} s."
    )
    yield ""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|" + "---|" * len(_COLUMNS)
    for row in case.rows:
        yield _line(case, row)


def _line(case: RestoreCase, row: RestoreRow) -> str:
    cache = f"{row.cache:,}" if row.cache else "–"
    seconds = _spread(row.seconds.median, row.seconds.least, row.seconds.most)
    ratio = _spread(row.ratio.median, row.ratio.least, row.ratio.most)
    if not row.finished:
        seconds = f"given up after {row.seconds.median:.0f}, at {row.records / case.records:.0%}"
        ratio = f"> {row.ratio.median:.1f}"
    cpu = ("" if row.finished else "> ") + _told(row.cpu_ratio)
    return (
        f"| {_METHODS[row.method]} | {cache} | {row.polls:,} | {row.first_hits:,} | {row.cache_hits:,} | "
        f"{row.peak_cache:,} | {row.cache_ratio:.0%} | {row.reads:.2f} | {seconds} | {ratio} | {cpu} | "
        f"{row.peak_memory_bytes / 1e6:,.0f} MB |"
    )


def _spread(median: float, least: float, most: float) -> str:
    return f"{median:.2f}" if least == most else f"{median:.2f} ({least:.2f}–{most:.2f})"


def _refill(found: RestoreBench) -> Iterator[str]:
    refill = found.refill
    if refill is None:
        return
    ours, plain = refill.records_per_second, refill.plain_records_per_second
    yield "### Ordered refill"
    yield ""
    yield (
        f"{refill.records:,} records of {refill.producers} producers, in runs of about 10, read from their rows, "
        f"merged in journal order, hashed, proven and written: **{ours.median:,.0f} records/s** "
        f"({ours.least:,.0f}–{ours.most:,.0f}). Plain producing of the same messages with the same headers from "
        f"memory: {plain.median:,.0f} ({plain.least:,.0f}–{plain.most:,.0f}). Ratio {refill.ratio.median:.2f} "
        f"({refill.ratio.least:.2f}–{refill.ratio.most:.2f}); the process grew by "
        f"{refill.peak_memory_bytes / 1e6:,.0f} MB."
    )


def _spark(found: RestoreBench) -> Iterator[str]:
    spark = found.spark
    if spark is None:
        return
    yield ""
    yield "### Through Spark"
    yield ""
    yield (
        f"{spark.records:,} records of {spark.producers} producers, {spark.interleaving}, one partition, one session, "
        f"in turns: in order {_told(spark.seconds)} s, sorted {_told(spark.sorted_seconds)} s, a plain read through "
        f"`mapInArrow` {_told(spark.plain_seconds)} s. Ratio of the first to the last {_told(spark.ratio)}."
    )


def _told(spread: Spread) -> str:
    return _spread(spread.median, spread.least, spread.most)


def picture_of(found: RestoreBench) -> str:
    """The ratios of each log, and a line where a plain read stands."""
    bars = [
        Bar(_label(case, row), row.ratio.median, _COLOURS[row.method])
        for case in found.cases
        for row in case.rows
        if row.method in _COLOURS
    ]
    return draw_bars("time as a multiple of a plain read of the same topic", bars, 1.0)


def _label(case: RestoreCase, row: RestoreRow) -> str:
    cache = f" {_short(row.cache)}" if row.cache else ""
    return f"{_short(case.records)} {case.interleaving} {case.producers}p {row.method}{cache}"


def _short(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1000}k"
