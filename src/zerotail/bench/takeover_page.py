"""The section of `docs/benchmarks.md` about takeovers, and its picture, made from a result and from nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from zerotail.bench.goals import table_of
from zerotail.bench.page import Bar, draw_bars, picture_name, put_section
from zerotail.bench.result import TakeoverResult, TakeoverRound
from zerotail.bench.stored import Stored, told_stamps
from zerotail.bench.takeover_goals import TARGET_MEDIAN_SECONDS, WARM_MESSAGES, goals_of

NAME = "bench takeover"
_OURS, _MIRRORED = "#2a78b8", "#b0764a"


def write_page(stored: Stored[TakeoverResult], page: Path) -> None:
    """Put the section into the page, and the picture beside it."""
    put_section(page, NAME, section_of(stored), picture_of(stored.result))


def section_of(stored: Stored[TakeoverResult]) -> str:
    """The tables, in Markdown."""
    found = stored.result
    lines = ["## Takeover", "", *told_stamps(stored), "", *_introduction(found), "", *_histories(found), ""]
    lines += [*_steps(found)]
    if found.mirrored:
        lines += ["", *_mirrored(found)]
    return "\n".join(lines) + "\n"


def _introduction(found: TakeoverResult) -> Iterator[str]:
    yield (
        "Two real sites under load; everything of the active one is killed with `kill -9`, the warm standby takes "
        f"over, the lost site comes back, and so on, back and forth. A standby has followed {WARM_MESSAGES:,} messages "
        "before its site counts as warm. Seconds are from the command to the first accepted message whose instruction "
        "was given after the kill."
    )
    yield ""
    yield from table_of(goals_of(found))
    yield ""
    yield f"![seconds of each takeover]({picture_name(NAME)})"


def _histories(found: TakeoverResult) -> Iterator[str]:
    yield "| instructions of history | takeovers | median (s) | least–most | promotion | records read | appended |"
    yield "|" + "---|" * 7
    for history in map(int, found.medians_by_history):
        some = [one for one in found.rounds if one.history == history]
        seconds = [one.takeover_seconds for one in some]
        yield (
            f"| {history:,} | {len(some)} | {statistics.median(seconds):.2f} | {min(seconds):.2f}–{max(seconds):.2f} | "
            f"{statistics.median(one.promote_seconds for one in some):.2f} | "
            f"{_from_to([one.read for one in some])} | {_from_to([one.refilled for one in some])} |"
        )
    yield ""
    yield "*Read* and *appended* are records of the survivor's topics, before its stages went live."


def _steps(found: TakeoverResult) -> Iterator[str]:
    """Where the time goes: medians over all takeovers."""
    names = [*dict.fromkeys(step for one in found.rounds for step in one.steps)]
    yield "| step | median (s) | most |"
    yield "|---|---|---|"
    for name in names:
        seconds = _of_step(found.rounds, name)
        yield f"| {name} | {statistics.median(seconds):.3f} | {max(seconds):.3f} |"


def _of_step(rounds: Sequence[TakeoverRound], name: str) -> list[float]:
    return [one.steps[name] for one in rounds if name in one.steps]


def _mirrored(found: TakeoverResult) -> Iterator[str]:
    yield "### Beside a plain MirrorMaker 2 failover"
    yield ""
    yield (
        "The same payments through a topic that MirrorMaker 2 copies, exactly once and at its shortest sensible "
        "intervals, with the consumer group's position; the site is killed the same way, and the operator does what "
        "the manuals say. The receiver counts what was acknowledged and never came, and what came twice. The seconds "
        "are not those of one race: this operator stops MirrorMaker 2 and then starts a consumer, which begins cold, "
        f"in a new process; our standby is warm and has followed {WARM_MESSAGES:,} messages."
    )
    yield ""
    yield "| | acknowledged | lost | duplicated | first new message after (s) |"
    yield "|---|---|---|---|---|"
    for number, one in enumerate(found.mirrored, 1):
        yield (
            f"| MirrorMaker 2, loss {number} | {one.submitted:,} | {one.lost:,} | {one.duplicated:,} | "
            f"{one.takeover_seconds:.2f} |"
        )
    history = sum(map(int, found.medians_by_history))
    yield (
        f"| zerotail, {len(found.rounds)} losses | {history:,} and more | {found.lost} | "
        f"{found.duplicated} | {found.takeover_seconds_median:.2f} (median) |"
    )


def _from_to(numbers: Sequence[int]) -> str:
    return f"{min(numbers):,}" if min(numbers) == max(numbers) else f"{min(numbers):,}–{max(numbers):,}"


def picture_of(found: TakeoverResult) -> str:
    """A bar for each takeover, and a line at the median that is wanted."""
    ours = [Bar(f"{one.history:,} instructions", one.takeover_seconds, _OURS) for one in found.rounds]
    mirrored = [
        Bar("MirrorMaker 2", one.takeover_seconds, _MIRRORED, f"({one.lost:,} lost, {one.duplicated:,} twice)")
        for one in found.mirrored
    ]
    return draw_bars("seconds to the first new message outside", [*ours, *mirrored], TARGET_MEDIAN_SECONDS)
