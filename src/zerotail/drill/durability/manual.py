"""The page about it, written from a stored result, so that no number is in it that was not found.

zerotail bench durability --result bench/results/durability.json --page docs/durability.md
zerotail bench durability --from bench/results/durability.json --page docs/durability.md
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from zerotail.bench.stored import Stored, told_stamps
from zerotail.drill.durability.faults import FAULTS
from zerotail.drill.durability.judgement import spared
from zerotail.drill.durability.picture import draw, label
from zerotail.drill.durability.result import CellFound, DurabilityResult

Pick = Callable[[CellFound], bool]
_NOT_PLAYED = "not played"
_NOTE = "<!-- bench durability: made by the command -->"


def write_page(stored: Stored[DurabilityResult], page: Path) -> None:
    """Write the page, and the picture beside it."""
    page.write_text(page_of(stored), encoding="utf-8")
    page.with_suffix(".svg").write_text(draw(stored.result), encoding="utf-8")


def page_of(stored: Stored[DurabilityResult]) -> str:
    """The page."""
    result = stored.result
    return "\n".join(
        [
            _NOTE,
            "",
            "# What an acknowledgement is worth",
            "",
            "Three brokers and a controller, as real processes on one machine; a topic for each combination of "
            "settings, three copies each, all led by the same broker, so that one fault strikes all combinations in "
            "the same moment. Records are numbered. What the producer was told to be delivered is written down, and "
            "when the cluster is whole again every topic is read from its beginning. **Lost** is what was acknowledged "
            "and is not there any more.",
            "",
            "```sh",
            "zerotail bench durability            # everything below",
            "zerotail bench durability --quick    # one fault, in half a minute",
            "zerotail drill run acks              # each fault once, with a verdict",
            "```",
            "",
            *told_stamps(stored),
            "",
            f"Kafka {result.versions['kafka']}, {result.kills} kills of a leader, {result.leaders_lost:,} partitions "
            f"lost their leader, {result.rate:,.0f} records a second and combination, {result.seconds / 60:.0f} "
            f"minutes. Verdict: **{result.verdict}**: {'; '.join(result.reasons)}.",
            "",
            "![acknowledged records that are gone, by settings and fault](durability.svg)",
            "",
            *(row for row in _claims(result) if _NOT_PLAYED not in row),
            "",
            "## All figures",
            "",
            "Lost / acknowledged records. Bold: nothing may be lost there. A topic that flushes each record is "
            "marked (†) where power is lost: nothing is ever cut from it, by construction, so that its zero "
            "proves nothing.",
            "",
            *_table(result, _lost_of, lambda one: one.promised and not spared(one)),
            "",
            "Records that are in the log more than once: the producer got no answer, and sent again. Bold: there must "
            "be none.",
            "",
            *_table(result, lambda one: f"{one.repeated:,}", lambda one: one.idempotent),
            "",
            "## The faults",
            "",
            "| fault | rounds | what happens | seen in the first round |",
            "|---|---|---|---|",
            *(f"| `{one.name}` | {one.rounds} | {one.summary} | {'; '.join(one.evidence)} |" for one in result.faults),
            *_missing(result),
            "",
            *_HOW,
        ]
    )


def _lost_of(one: CellFound) -> str:
    return f"{one.lost:,} / {one.acknowledged:,}{' †' if spared(one) else ''}"


_HOW = [
    "## How it is done, and what it does not show",
    "",
    "- The controller is a process of its own and is never struck. The session of a broker is 3 s (Kafka's default: "
    "9 s), so that a round is short; everything else that matters here is left at its default, eligible leader "
    "replicas included.",
    "- `acks=0`: a record counts as acknowledged when the client hands it to the socket; there is no other word.",
    "- **Power loss is emulated**: the brokers are killed and each log is cut at its recovery point, the offset up to "
    "which Kafka has called `fsync`, read from `recovery-point-offset-checkpoint`. Topics with `flush.messages=1` are "
    "never cut, because Kafka is said to flush such a record before it answers: that is taken for granted and not "
    "shown. This is the worst case: the kernel had written "
    "nothing back by itself. Linux does that after about 30 seconds, so a real power loss takes up to as much.",
    "- Not emulated: torn pages, disks that lie about a flush, loss of the controller's own log.",
    "- All processes are on one machine: nothing here is a statement about speed.",
    "- *passed* asks for more than zeros: each fault must have been seen to bite, and must have taken something from "
    "settings that are weaker, or the run is *undecided*.",
    "",
    "[The audit](audit.md) asks for `acks=all`, two copies in sync, no unclean election and idempotence. For a flush "
    "of every record it asks only where all copies of a partition stand in one rack, or in one that nobody named: "
    "copies in several racks are taken for copies on separate power. If all racks lose power at once, those "
    "settings lose what the last column shows.",
    "",
]


def _claims(result: DurabilityResult) -> list[str]:
    """What is often said, with what was found."""

    def told(fault: str, pick: Pick) -> str:
        return lost(result, fault, pick)

    behind, alone, both = "leader-killed-followers-behind", "leader-killed-alone", "both-in-sync-killed"
    plain = _all_of(2, unclean=False)
    return [
        "## What is often said, and what was found",
        "",
        "| | found |",
        "|---|---|",
        "| `acks=0` is fast, and a message may be lost | "
        f"{told('leader-killed', lambda one: one.acks == '0')} when the leader was killed |",
        "| `acks=1` loses what the followers have not fetched yet | "
        f"{told('leader-killed', lambda one: one.acks == '1')} with followers that keep up; "
        f"{told(behind, lambda one: one.acks == '1')} when they stood still for half a second before |",
        "| `min.insync.replicas` and a forbidden unclean election protect `acks=1` as well | no: "
        f"{told(behind, lambda one: one.acks == '1' and one.min_insync == 2 and not one.unclean)} with both |",
        "| `acks=all` waits for every copy that is in sync | "
        f"{told('leader-killed', _all_of(2))} and {told(behind, _all_of(2))} in the same kills, with "
        "`min.insync.replicas=2` |",
        "| without `min.insync.replicas`, `acks=all` may mean the leader alone | "
        f"{told(alone, _all_of(1, unclean=True))} with 1 and unclean election, "
        f"{told(alone, _all_of(2))} with 2 |",
        "| unclean election has to be off | with `acks=all` and `min.insync.replicas=2`, both copies in sync killed: "
        f"{told(both, _all_of(2, unclean=True))} with it, {told(both, plain)} without: the partition waits |",
        "| a leader that was frozen and wakes up acknowledges what nobody keeps | "
        f"{told('leader-frozen', lambda one: one.acks == '1')} with `acks=1`, "
        f"{told('leader-frozen', _all_of(2))} with `acks=all` |",
        "| only what is on the leader's disk is copied to the followers | no: they get what is in memory. "
        f"{told('leader-loses-power', lambda one: plain(one) and not one.flushed)} when the leader lost everything "
        "that was not flushed |",
        "| once acknowledged, a record survives even if all machines lose power | no: an acknowledgement means three "
        f"page caches. {told('all-lose-power', lambda one: plain(one) and not one.flushed)} with `acks=all` and "
        "`min.insync.replicas=2` |",
        "| Kafka cannot flush before it answers | it can be told to, topic by topic, with `flush.messages=1`; not "
        "shown here: this power loss never cuts such a topic |",
        "| repeats come from sending again | "
        f"{_repeated(result, lambda one: one.acks != '0' and not one.idempotent)} repeats without idempotence, "
        f"{_repeated(result, lambda one: one.idempotent)} with it, over all faults |",
    ]


def _missing(result: DurabilityResult) -> list[str]:
    """The faults that the figures are silent about."""
    played = {one.name for one in result.faults}
    return [f"| `{one.name}` | 0 | {one.summary} | not played here |" for one in FAULTS if one.name not in played]


def _all_of(least: int, *, unclean: bool | None = None) -> Pick:
    return lambda one: one.acks == "all" and one.min_insync == least and unclean in (None, one.unclean)


def lost(result: DurabilityResult, fault: str, pick: Pick) -> str:
    """`3 of 1,234 lost`, over the cells that are picked."""
    cells = [one for one in result.cells if one.fault == fault and pick(one)]
    if not cells:
        return _NOT_PLAYED
    return f"{sum(one.lost for one in cells):,} of {sum(one.acknowledged for one in cells):,} lost"


def _repeated(result: DurabilityResult, pick: Pick) -> str:
    return f"{sum(one.repeated for one in result.cells if pick(one)):,}"


def _table(result: DurabilityResult, shown: Callable[[CellFound], str], is_bold: Pick) -> list[str]:
    faults = [one.name for one in result.faults]
    found = {(one.cell, one.fault): one for one in result.cells}
    rows = [f"| settings | {' | '.join(faults)} |", f"|---|{'---|' * len(faults)}"]
    for cell in dict.fromkeys(one.cell for one in result.cells):
        fields = [found[cell, fault] for fault in faults]
        told = [f"**{shown(one)}**" if is_bold(one) else shown(one) for one in fields]
        rows.append(f"| {label(fields[0])} | {' | '.join(told)} |")
    return rows
