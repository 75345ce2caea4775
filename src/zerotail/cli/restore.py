"""`zerotail restore`: a topic in any state, and consumers that see the journal's order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zerotail.cli.output import json_option, print_answer, print_json, say
from zerotail.errors import Misused

if TYPE_CHECKING:
    from zerotail.config import Configuration
    from zerotail.core.identity import SiteName
    from zerotail.core.restoration.forecast import Forecast
    from zerotail.restore import Place, Wish
    from zerotail.restore.report import PartitionPlan, PartitionReport, RestorePlan, RestoreReport

STRATEGIES = ["skip", "ordered-refill", "unbounded", "bounded", "sort", "mirror-tail", "follower", "auto"]


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml."),
        click.option("--site", metavar="S", help="The site whose topic is meant; else the preferred one."),
        click.option("--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True),
        click.option("--into", metavar="TOPIC", help="Write the records to this topic, in order, each once."),
        click.option(
            "--cache", type=click.IntRange(0), metavar="N", help="At most N records wait, whatever they take."
        ),
        click.option(
            "--spill",
            type=click.Path(file_okay=False, path_type=Path),
            help="A folder on a local disk for what a bounded restore has no room for; else it reads again.",
        ),
        click.option("--memory", metavar="SIZE", help="What a restore may use, such as 512MB; else as configured."),
        click.option("--strategy", type=click.Choice(STRATEGIES), help="How; else as the configuration says."),
        click.option("--partition", type=click.IntRange(0), metavar="P", help="This partition only."),
        click.option("--topic", required=True, metavar="P", help="The topic, as the configuration calls it."),
    ):
        function = option(function)
    return function


@click.group("restore", epilog="Example:  zerotail restore plan --topic payments")
def command() -> None:
    """Refill and reorder a topic without changing roles: consumers see the journal's order again."""


@command.command("plan", epilog="Example:  zerotail restore plan --topic payments --memory 512MB")
@_options
@json_option
def plan(as_json: bool, **asked: Any) -> None:
    """What every strategy would take, and why one cannot be used; changes nothing."""
    from zerotail.restore import plan_restore
    from zerotail.restore.report import RestorePlan

    _, site, places, wish = _asked(**asked)
    seen = [plan_restore(place, wish) for place in places]
    found = RestorePlan(site, asked["topic"], wish.memory_bytes, tuple(one.plan for one in seen))
    if as_json:
        print_json("restore-plan", found)
    else:
        print_answer(_told_plan(found))


@command.command("run", epilog="Example:  zerotail restore run --topic payments --strategy bounded --memory 256MB")
@_options
@click.option(
    "--check",
    type=click.Choice(["values", "headers"]),
    default="values",
    show_default=True,
    help="Compute the digest of every value, or trust the one in its header; the chain is computed in any case.",
)
@click.option("--rebuild-state", is_flag=True, help="Replay through the handler, and compare the state.")
@json_option
def run(check: str, rebuild_state: bool, as_json: bool, **asked: Any) -> None:
    """Carry it out; prediction and outcome stand side by side afterwards.

    Changes topics only, never the database. Stopped anywhere and run again, it goes on where it was.
    """
    from zerotail.restore.report import RestoreReport

    configuration, site, places, wish = _asked(**asked)
    if wish.spark:
        from zerotail.restore.configured import rebuild_of
        from zerotail.spark.restore_job import restore_with_spark

        done = restore_with_spark(
            configuration,
            places,
            wish,
            lambda line: say(f"restore: {line}"),
            check_values=check == "values",
            make_rebuild=partial(rebuild_of, configuration) if rebuild_state else None,
        )
    else:
        done = tuple(_run_one(configuration, place, wish, check == "values", rebuild_state) for place in places)
    report = RestoreReport(site, asked["topic"], done)
    if as_json:
        print_json("restore-report", report)
    else:
        print_answer(_told_report(report))


def _run_one(
    configuration: Configuration, place: Place, wish: Wish, check_values: bool, rebuild_state: bool
) -> PartitionReport:
    from zerotail.restore import plan_restore
    from zerotail.restore.configured import restore_seen
    from zerotail.restore.rebuild import require_all_read

    seen = plan_restore(place, wish)
    if rebuild_state:
        require_all_read(seen)
    say(f"restore: partition {place.partition} of {seen.recorded.topic}: {seen.plan.chosen}, {seen.plan.reason}")
    return restore_seen(configuration, seen, rebuild=rebuild_state, check_values=check_values)


def _asked(
    topic: str,
    partition: int | None,
    strategy: str | None,
    memory: str | None,
    cache: int | None,
    into: str | None,
    spill: Path | None,
    engine: str,
    site: str | None,
    config: str | None,
) -> tuple[Configuration, SiteName, list[Place], Wish]:
    from zerotail.cli.configured import load_with_code
    from zerotail.config.problem import Unfit
    from zerotail.config.scalar import read_size
    from zerotail.core.identity import TopicName
    from zerotail.core.restoration.forecast import RestoreStrategy
    from zerotail.restore import Wish
    from zerotail.restore.configured import places_of

    if memory is not None and cache is not None:
        raise Misused("--memory and --cache both limit what waits; give one of them.", code="ZT143")
    if into is not None and into == topic:
        raise Misused(f"--into {into} is the topic itself; without --into it is completed in place.", code="ZT144")
    configuration = load_with_code(config)
    chosen = configuration.preferred_site if site is None else configuration.require_site(site)
    try:
        memory_bytes = int(configuration.restore.memory if memory is None else read_size(memory))
    except Unfit as unfit:
        raise Misused(f"--memory {unfit}.", code="ZT145", tries=["--memory 512MB"]) from unfit
    wish = Wish(
        strategy=RestoreStrategy(strategy or configuration.restore.strategy),
        memory_bytes=memory_bytes,
        cache_messages=cache,
        spark=engine == "spark",
        into=None if into is None else TopicName(into),
        spill=spill,
    )
    return configuration, chosen, places_of(configuration, chosen, topic, partition), wish


def _told_plan(found: RestorePlan) -> str:
    return "\n".join(line for one in found.partitions for line in (_told_partition(one), _table(one)))


def _told_partition(one: PartitionPlan) -> str:
    order = "in the journal's order" if one.ordered else f"about {one.peak_cache_messages:,} records early at the most"
    return (
        f"{one.topic} partition {one.partition} · {one.journaled:,} journaled in {one.segments:,} segments · "
        f"{one.records:,} in the log, {one.missing:,} missing, {order}\n"
        f"{one.chosen}: {one.reason}"
    )


def _table(one: PartitionPlan) -> str:
    rows = [_row(forecast, forecast.strategy is one.chosen) for forecast in one.forecasts]
    return "\n".join([f"  {'':16}{'time':>9}{'memory':>11}{'reads':>7}{'writes':>12}", *rows])


def _row(forecast: Forecast, chosen: bool) -> str:
    mark = "→ " if chosen else "  "
    if not forecast.usable:
        return f"{mark}{forecast.strategy:16}{'cannot be used: ' + forecast.reason}"
    figures = _figures(forecast.seconds, forecast.memory_bytes, forecast.reads, forecast.writes)
    return f"{mark}{forecast.strategy:16}{figures}  {forecast.reason}"


def _figures(seconds: float | None, memory_bytes: int | None, reads: float | None, writes: int | None) -> str:
    megabytes = f"{(memory_bytes or 0) / 1e6:,.0f} MB"
    return f"{seconds or 0.0:>7.1f} s{megabytes:>11}{reads or 0.0:>7.2f}{writes or 0:>12,}"


def _told_report(found: RestoreReport) -> str:
    return "\n".join(line for one in found.partitions for line in _told_done(one))


def _told_done(one: PartitionReport) -> list[str]:
    plan, outcome, forecast = one.plan, one.outcome, one.plan.forecast
    what = "were passed over" if one.strategy == "skip" else "are in order"
    lines = [f"{plan.topic} partition {plan.partition} · {one.strategy} · {one.records:,} records {what}"]
    if one.chain:
        lines.append(f"  {one.segments:,} segments come to chain {one.chain[:16]}, as recorded")
    if one.state_digest:
        lines.append(f"  the handler comes to the stored state, digest {one.state_digest[:16]}")
    if one.written_to:
        lines.append(f"  in order in topic {one.written_to}")
    if one.live_offset is not None:
        lines.append(f"  what is not journaled begins at offset {one.live_offset}")
    lines += [
        f"  {'':12}{'time':>9}{'memory':>11}{'reads':>7}{'writes':>12}",
        f"  {'predicted':12}{_figures(forecast.seconds, forecast.memory_bytes, forecast.reads, forecast.writes)}",
        f"  {'outcome':12}{_figures(outcome.seconds, outcome.memory_bytes, outcome.reads, outcome.writes)}",
    ]
    found = outcome.statistics
    if found is not None:
        lines.append(
            f"  first hits {found.first_hits:,}, cache hits {found.cache_hits:,}, peak cache "
            f"{found.peak_cache_messages:,} ({found.cache_ratio:.0%}), {found.spilled:,} spilled, "
            f"{found.polls:,} polls, {found.repeats:,} repeats, {found.foreign:,} foreign"
        )
    return lines
