"""`zerotail bench`: what it costs, measured on real servers."""

from __future__ import annotations

import click

from zerotail.cli.bench_kept import Kept, kept_options, result_options
from zerotail.cli.bench_shown import told_checks, told_flow, told_journal, told_mirror, told_takeover
from zerotail.cli.output import json_option, print_answer, print_json, say
from zerotail.cli.takeover import STRATEGIES


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
@kept_options
@json_option
def bench_flow(
    count: int,
    rounds: int,
    accounts: int,
    partitions: int,
    rate: float,
    latency_seconds: float,
    page: str | None,
    result: str | None,
    keep: bool,
    earlier: str | None,
    as_json: bool,
) -> int:
    """Records per second from instruction rows to the receiver, against plain Spark; latency at a fixed rate.

    Brings up two sites of its own and takes them down again. Exits with 1 when a figure is not reached. With `--keep`
    what was measured with other partitions stays in the result.
    """
    from zerotail.bench.flow import FlowSettings
    from zerotail.bench.flow import bench_flow as measure
    from zerotail.bench.flow_page import write_page
    from zerotail.bench.result import FlowBench

    settings = FlowSettings(count, rounds, accounts, partitions, rate, latency_seconds)
    kept = Kept(FlowBench, result, keep, earlier, page, write_page)
    found = kept.show_or(lambda before, _save: measure(settings, lambda line: say(f"bench flow: {line}"), before))
    if as_json:
        print_json("bench-flow", found)
    else:
        print_answer(told_flow(found))
    return 0 if all(found.reached.values()) else 1


@command.command("checks", epilog="Example:  zerotail bench checks --count 300000 --rounds 5")
@click.option("--count", type=click.IntRange(1000), default=500_000, show_default=True, help="Instructions a round.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Rounds with and without.")
@result_options
@json_option
def bench_checks(
    count: int, rounds: int, page: str | None, result: str | None, earlier: str | None, as_json: bool
) -> int:
    """What the checks of digest and installation cost: the flow with them and without, in turns.

    Brings up two sites of its own and takes them down again. Exits with 1 when they cost more than they may.
    """
    from zerotail.bench.checks import bench_checks as measure
    from zerotail.bench.checks_page import write_page
    from zerotail.bench.result import ChecksCost

    kept = Kept(ChecksCost, result, False, earlier, page, write_page)
    found = kept.show_or(lambda *_: measure(count, rounds, lambda line: say(f"bench checks: {line}")))
    if as_json:
        print_json("bench-checks", found)
    else:
        print_answer(told_checks(found))
    return 0 if all(found.reached.values()) else 1


@command.command("journal", epilog="Example:  zerotail bench journal --records 1000")
@click.option("--segments", type=click.IntRange(1), default=200, show_default=True, help="How many are committed.")
@click.option("--records", type=click.IntRange(1), default=1000, show_default=True, help="Messages in each.")
@result_options
@json_option
def bench_journal(
    segments: int, records: int, page: str | None, result: str | None, earlier: str | None, as_json: bool
) -> int:
    """Bytes of WAL per message for the order journal alone, against one row per message."""
    from zerotail.bench.journal import measure_journal
    from zerotail.bench.journal_page import write_page
    from zerotail.bench.result import JournalCost
    from zerotail.lab.database import dsn
    from zerotail.lab.layout import LabSettings
    from zerotail.lab.up import temporary_lab

    def measure(*_: object) -> JournalCost:
        say("bench journal: bringing up two sites")
        with temporary_lab(LabSettings) as layout:
            return measure_journal(dsn(layout.database("east")), segments, records)

    found = Kept(JournalCost, result, False, earlier, page, write_page).show_or(measure)
    if as_json:
        print_json("bench-journal", found)
    else:
        print_answer(told_journal(found))
    return 0 if all(found.reached.values()) else 1


@command.command("takeover", epilog="Example:  zerotail bench takeover --history 100000 --rounds 10")
@click.option(
    "--history", default="100000,1000000,10000000", show_default=True, help="Instructions before, several by commas."
)
@click.option("--rounds", default="10", show_default=True, help="Takeovers for each history, or for all of them.")
@click.option("--rate", type=click.FloatRange(1, 50_000), default=500, show_default=True, help="Instructions a second.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default="auto", show_default=True)
@click.option("--with", "beside", type=click.Choice(["mm2"]), help="A plain MirrorMaker 2 failover beside it.")
@click.option("--mm2-rounds", type=click.IntRange(1), default=3, show_default=True, help="Of those, with --with mm2.")
@kept_options
@json_option
def bench_takeover(
    history: str,
    rounds: str,
    rate: float,
    strategy: str,
    beside: str | None,
    mm2_rounds: int,
    page: str | None,
    result: str | None,
    keep: bool,
    earlier: str | None,
    as_json: bool,
) -> int:
    """Seconds from the takeover command to the first new message outside, with a warm standby.

    Brings up two sites of its own, kills the active one again and again, and takes both down. Exits with 1 when a
    figure is not reached.
    """
    from zerotail.bench.result import TakeoverResult
    from zerotail.bench.takeover import TakeoverSettings
    from zerotail.bench.takeover import bench_takeover as measure
    from zerotail.bench.takeover_page import write_page
    from zerotail.errors import Misused

    lengths, takeovers = _numbers("--history", history), _numbers("--rounds", rounds)
    if len(takeovers) == 1:
        takeovers *= len(lengths)
    if len(takeovers) != len(lengths):
        raise Misused(
            f"--rounds has {len(takeovers)} numbers, and --history {len(lengths)}: one for all, or one for each.",
            tries=["--history 100000,1000000 --rounds 20,10"],
        )
    settings = TakeoverSettings(lengths, takeovers, rate, strategy, mirrored_rounds=mm2_rounds if beside else 0)
    kept = Kept(TakeoverResult, result, keep, earlier, page, write_page)
    found = kept.show_or(
        lambda before, save: measure(settings, lambda line: say(f"bench takeover: {line}"), before, save)
    )
    if as_json:
        print_json("bench-takeover", found)
    else:
        print_answer(told_takeover(found))
    return 0 if all(found.reached.values()) else 1


@command.command("durability", epilog="Example:  zerotail bench durability --quick")
@click.option("--quick", is_flag=True, help="Two kills of a leader instead of everything: half a minute, not ten.")
@click.option("--fault", "faults", multiple=True, metavar="NAME", help="This fault only; may be given again.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the moments of the faults.")
@kept_options
@json_option
def bench_durability(
    quick: bool,
    faults: tuple[str, ...],
    seed: int,
    page: str | None,
    result: str | None,
    keep: bool,
    earlier: str | None,
    as_json: bool,
) -> int:
    """Acknowledged records that are lost: acks, min.insync.replicas and unclean election against eight faults.

    Brings up three brokers of its own, kills and freezes them again and again, and takes them down. Exits with 1
    when something was lost where nothing may be lost, or the run proves too little.
    """
    from dataclasses import replace

    from zerotail.cli.durability_shown import told_durability
    from zerotail.drill.durability.manual import write_page
    from zerotail.drill.durability.result import DurabilityResult
    from zerotail.drill.durability.run import QUICK, WHOLE, only, run_durability

    settings = replace(only(faults) if faults else QUICK if quick else WHOLE, seed=seed)
    kept = Kept(DurabilityResult, result, keep, earlier, page, write_page)
    found = kept.show_or(
        lambda before, _save: run_durability(settings, lambda line: say(f"bench durability: {line}"), before)
    )
    if as_json:
        print_json("bench-durability", found)
    else:
        print_answer(told_durability(found))
    return 0 if found.verdict == "passed" and (quick or all(found.reached.values())) else 1


@command.command("restore", epilog="Example:  zerotail bench restore --sizes 200000,1000000 --page docs/benchmarks.md")
@click.option(
    "--sizes", default="200000,1000000,10000000", show_default=True, help="Records in the topic, several by commas."
)
@click.option("--interleavings", default="like-notes,fine,skewed,one-first", show_default=True)
@click.option("--producers", default="2,4,16", show_default=True, help="How many write to it, several by commas.")
@click.option("--caches", default="10000,20000,50000,100000", show_default=True, help="Of the bounded restore.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Of each method; 1 for millions.")
@click.option("--rewinding-seconds", type=click.FloatRange(1), default=90.0, show_default=True, help="Then given up.")
@click.option("--refill", type=click.IntRange(0), default=1_000_000, show_default=True, help="Records; 0 for none.")
@click.option("--spark", type=click.IntRange(0), default=2_000_000, show_default=True, help="The same through Spark.")
@click.option("--methods", help="Some of unbounded,bounded,spilled,checked,rested,dictionary,rewinding; else all.")
@kept_options
@json_option
def bench_restore(
    sizes: str,
    interleavings: str,
    producers: str,
    caches: str,
    rounds: int,
    rewinding_seconds: float,
    refill: int,
    spark: int,
    methods: str | None,
    page: str | None,
    result: str | None,
    keep: bool,
    earlier: str | None,
    as_json: bool,
) -> int:
    """Restoring the order of a topic, against a plain read of it; the notes' tables, completed.

    Brings up two sites of its own and takes them down again. Exits with 1 when a figure is not reached.
    """
    from zerotail.bench.interleaving import KINDS
    from zerotail.bench.restore import METHODS, RestoreSettings
    from zerotail.bench.restore import bench_restore as measure
    from zerotail.bench.restore_page import tables_of, write_page
    from zerotail.bench.restore_result import RestoreBench

    settings = RestoreSettings(
        _numbers("--sizes", sizes),
        _words("--interleavings", interleavings, KINDS),
        _numbers("--producers", producers),
        _numbers("--caches", caches),
        rounds,
        rewinding_seconds,
        refill,
        spark,
        METHODS if methods is None else _words("--methods", methods, METHODS),
    )
    kept = Kept(RestoreBench, result, keep, earlier, page, write_page)
    found = kept.show_or(
        lambda before, save: measure(settings, lambda line: say(f"bench restore: {line}"), before, save)
    )
    if as_json:
        print_json("bench-restore", found)
    else:
        print_answer(tables_of(found))
    return 0 if all(found.reached.values()) else 1


def _numbers(option: str, text: str) -> tuple[int, ...]:
    from zerotail.errors import Misused

    words = [word.strip() for word in text.replace("_", "").split(",")]
    if not all(word.isdigit() and int(word) for word in words):
        raise Misused(f"{option} is a list of numbers, not {text!r}.", code="ZT147", tries=[f"{option} 1000,2000"])
    return tuple(map(int, words))


def _words(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    from zerotail.errors import Misused

    words = tuple(word.strip() for word in text.split(","))
    if not set(words) <= set(known):
        raise Misused(f"{option} are {', '.join(known)}, not {text!r}.", code="ZT147")
    return words


@command.command("mirror", epilog="Example:  zerotail bench mirror --count 3000000 --rounds 1")
@click.option("--count", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Records a round.")
@click.option("--size", type=click.IntRange(16), default=100, show_default=True, help="Bytes of a record.")
@click.option("--partitions", default="1,4", show_default=True, help="Of the topic, several by commas.")
@click.option("--rounds", type=click.IntRange(1), default=2, show_default=True, help="Rounds of each engine.")
@kept_options
@json_option
def bench_mirror(
    count: int,
    size: int,
    partitions: str,
    rounds: int,
    page: str | None,
    result: str | None,
    keep: bool,
    earlier: str | None,
    as_json: bool,
) -> int:
    """Records per second of the Spark mirror and of MirrorMaker 2 with exactly-once, and the lag at half rate.

    Brings up two sites of its own and takes them down again. Exits with 1 when a figure is not reached.
    """
    from zerotail.bench.mirror import MirrorSettings
    from zerotail.bench.mirror import bench_mirror as measure
    from zerotail.bench.mirror_page import write_page
    from zerotail.bench.result import MirrorResult

    settings = MirrorSettings(count, size, _numbers("--partitions", partitions), rounds)
    kept = Kept(MirrorResult, result, keep, earlier, page, write_page)
    found = kept.show_or(lambda before, _save: measure(settings, lambda line: say(f"bench mirror: {line}"), before))
    if as_json:
        print_json("bench-mirror", found)
    else:
        print_answer(told_mirror(found))
    return 0 if all(found.reached.values()) else 1
