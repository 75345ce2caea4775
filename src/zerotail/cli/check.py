"""`zerotail check`: is a consumer group alive, and does it get anywhere?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zerotail.cli.output import json_option, print_answer, print_json
from zerotail.errors import Misused

if TYPE_CHECKING:
    from zerotail.consume.liveness import GroupVerdict
    from zerotail.kafka.cluster import Cluster


@click.command("check", epilog="Example:  zerotail check --group booking --site east")
@click.option("--group", metavar="G", required=True, help="Any consumer group of the cluster.")
@click.option("--config", "config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml.")
@click.option("--site", metavar="S", help="The site whose Kafka is meant; else the preferred one.")
@click.option("--bootstrap", metavar="BROKERS", help="A cluster by its brokers, without a configuration.")
@click.option(
    "--watch",
    "watch_seconds",
    type=click.FloatRange(1.0, 3600.0),
    default=16.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to look; longer than the clients wait before they store a position.",
)
@json_option
def command(
    group: str, config: str | None, site: str | None, bootstrap: str | None, watch_seconds: float, as_json: bool
) -> int:
    """Whether a consumer group runs, is slow, stalled, stopped, rebalancing or idle, by the trend of its positions.

    Says whether a member is dead, or alive without progress. Exits with 0 when the group runs or has nothing to do,
    else with 1.
    """
    from zerotail.cli.progress import count_display
    from zerotail.consume.watching import watch_group
    from zerotail.kafka.group import GroupWatch

    watch = GroupWatch(_cluster(config, site, bootstrap), group)
    with count_display(f"watching {group}", int(watch_seconds) + 1) as tell:
        verdict = watch_group(watch, group, watch_seconds, tell)
    if as_json:
        from zerotail.cli.answers import CheckGroupAnswer

        print_json("check-group", CheckGroupAnswer(verdict.is_well, verdict))
    else:
        print_answer("\n".join(_lines(verdict)))
    return 0 if verdict.is_well else 1


def _cluster(config: str | None, site: str | None, bootstrap: str | None) -> Cluster:
    from zerotail.kafka.cluster import Cluster

    if bootstrap is not None:
        if config is not None or site is not None:
            raise Misused("--bootstrap names the cluster itself; it does not go with --config or --site.")
        return Cluster(bootstrap)
    from zerotail.config import load
    from zerotail.core.identity import SiteName
    from zerotail.running.prepare import adapter_settings

    configuration = load(config)
    return adapter_settings(configuration, SiteName(site or configuration.preferred_site)).kafka


def _lines(verdict: GroupVerdict) -> list[str]:
    cause = f" ({verdict.cause.value})" if verdict.cause.value else ""
    lines = [
        f"{verdict.group} is {verdict.liveness.value.upper()}{cause}: {verdict.why}",
        f"  {verdict.members} members, {verdict.lag} records left, {verdict.per_second:g}/s, "
        f"watched for {verdict.watched_seconds:g} s",
        f"  {'partition':<28} {'is':<12} {'left':>10} {'moved':>10} {'arrived':>10}  member",
    ]
    lines += [
        f"  {one.partition!s:<28} {one.liveness.value:<12} {one.lag:>10} {one.moved:>10} {one.arrived:>10}  "
        f"{one.member or '–'}"
        for one in verdict.partitions
    ]
    return lines
