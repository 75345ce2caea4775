"""The commands of `zerotail mirror` that rehearse and tune: canary, load, advise."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from zerotail.cli.mirror_options import config_option, load_configuration, name_argument, state_of
from zerotail.cli.output import json_option, print_answer, print_json, tick
from zerotail.errors import Misused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerotail.core.topology import Flow
    from zerotail.mirror.advice import Advice, Verdict
    from zerotail.mirror.canary import CanaryReport


def _one_flow(flows: tuple[Flow, ...]) -> Flow:
    if len(flows) > 1:
        known = ", ".join(flow.source for flow in flows)
        raise Misused(f"{flows[0].mirror} has several flows.", code="ZT155", tries=[f"--from one of: {known}"])
    return flows[0]


_from_option = click.option(
    "--from", "source", metavar="CLUSTER", help="The source; needed when the mirror has several flows."
)


@click.command("canary", epilog="Example:  zerotail mirror canary east-west --count 60")
@name_argument
@_from_option
@click.option("--count", type=click.IntRange(1), default=10, show_default=True, help="How many canaries.")
@click.option("--every", type=click.FloatRange(0.05), default=1.0, show_default=True, help="Seconds between two.")
@click.option("--late", type=click.FloatRange(0.1), default=5.0, show_default=True, help="Seconds that one may take.")
@config_option
@json_option
def canary(
    name: str | None, source: str | None, count: int, every: float, late: float, path: str | None, as_json: bool
) -> int:
    """Write a record into the source each second and wait for it at the target: lost, late and doubled are counted.

    The mirror must run. Exits with 1 when a canary is lost, late or doubled.
    """
    from zerotail.cli.progress import count_display
    from zerotail.mirror.canary import fly
    from zerotail.mirror.flows import clusters_of, require_flows

    configuration = load_configuration(path)
    flow, clusters = _one_flow(require_flows(configuration, name, source=source)), clusters_of(configuration)
    with count_display(f"canaries of {flow.name}", count) as tell:
        report = fly(
            flow,
            clusters[flow.source],
            clusters[flow.target],
            count,
            late_seconds=late,
            every_seconds=every,
            tell=tell,
        )
    if as_json:
        from zerotail.cli.mirror_answers import MirrorCanaryAnswer

        print_json("mirror-canary", MirrorCanaryAnswer(report.is_well, report))
    else:
        print_answer(_told_canary(report))
    return 0 if report.is_well else 1


def _told_canary(one: CanaryReport) -> str:
    wrong = {"lost": one.lost, "late": one.late, "doubled": one.doubled}
    said = ", ".join(f"{number} {word}" for word, number in wrong.items())
    times = (
        "" if one.median_seconds is None else f"; median {one.median_seconds:.2f} s, worst {one.worst_seconds:.2f} s"
    )
    return f"{tick(one.is_well, sys.stdout)} {one.flow}: {one.arrived} of {one.sent} canaries arrived, {said}{times}"


@click.command("load", epilog="Example:  zerotail mirror load east-west --topic audit-1 --rate 20000 --count 1000000")
@name_argument
@_from_option
@click.option("--topic", required=True, metavar="TOPIC", help="An existing topic of the source that is mirrored.")
@click.option("--count", type=click.IntRange(1), default=100_000, show_default=True, help="Records.")
@click.option("--size", type=click.IntRange(16), default=100, show_default=True, help="Bytes of a record.")
@click.option("--rate", type=click.FloatRange(1), help="Records a second; else as fast as it goes.")
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="What a mirror has to unpack and pack again.",
)
@config_option
@json_option
def load(
    name: str | None,
    source: str | None,
    topic: str,
    count: int,
    size: int,
    rate: float | None,
    compression: str,
    path: str | None,
    as_json: bool,
) -> None:
    """Make a load at the source: size, rate and compression as chosen, over all partitions in turn."""
    from zerotail.cli.progress import count_display
    from zerotail.kafka.catalogue import Catalogue
    from zerotail.mirror.flows import clusters_of, require_flows
    from zerotail.mirror.load import make_load

    configuration = load_configuration(path)
    flow = _one_flow(require_flows(configuration, name, source=source))
    cluster = clusters_of(configuration)[flow.source]
    counts, _ = Catalogue(cluster, flow.source).partition_counts()
    if topic not in counts or not flow.takes(topic):
        raise Misused(
            f"{flow.mirror} copies no topic {topic!r} of {flow.source}.",
            code="ZT156",
            tries=[f"zerotail mirror plan {flow.mirror}"],
        )
    with count_display(f"load on {topic}", count) as tell:
        report = make_load(
            cluster,
            topic,
            count=count,
            size=size,
            rate=rate,
            compression=compression,
            partitions=counts[topic],
            tell=tell,
        )
    if as_json:
        print_json("mirror-load", report)
    else:
        print_answer(
            f"{report.records:,} records, {report.bytes / 1e6:,.1f} MB, into {topic} at {flow.source} in "
            f"{report.seconds:.1f} s: {report.records_per_second:,.0f} a second"
        )


@click.command("advise", epilog="Example:  zerotail mirror advise east-west --watch 10")
@name_argument
@_from_option
@click.option("--watch", "seconds", type=click.FloatRange(1), default=5.0, show_default=True, help="Seconds to look.")
@config_option
@json_option
def advise(name: str | None, source: str | None, seconds: float, path: str | None, as_json: bool) -> int:
    """Does the consumer or the producer hold the mirror up, why, and what to set otherwise, with the numbers beside it.

    The mirror must run on this machine, under load. The kernel's network settings are read and judged, too; nothing is
    changed. Of MirrorMaker 2 nobody measures what it waits for: it is said how far it is behind. Exits with 1 when
    there is advice, or when the mirror is behind and nobody knows why.
    """
    from zerotail.mirror.flows import clusters_of, require_flows
    from zerotail.mirror.network import network_advice, observe_network
    from zerotail.mirror.tuning import observe_verdict

    configuration = load_configuration(path)
    flow, clusters = _one_flow(require_flows(configuration, name, source=source)), clusters_of(configuration)
    cores = re.search(r"\[(\d+)", configuration.spark.master)
    tasks = int(cores.group(1)) if cores else 2
    verdict, standing = observe_verdict(
        flow, clusters[flow.source], clusters[flow.target], state_of(configuration), seconds, tasks
    )
    network = network_advice(observe_network())
    if as_json:
        from zerotail.cli.mirror_answers import MirrorAdviseAnswer

        print_json("mirror-advise", MirrorAdviseAnswer(verdict.is_well, flow.name, verdict, network))
    else:
        print_answer("\n".join(_told_verdict(flow.name, verdict, network, standing.lag_records)))
    return 0 if verdict.is_well else 1


def _told_verdict(flow: str, verdict: Verdict, network: tuple[Advice, ...], lag: int) -> Iterator[str]:
    held = {"consumer": "the consumer holds it up", "producer": "the producer holds it up", "neither": "nobody alone"}
    yield f"{flow}: {held[verdict.side]}, {verdict.cause}; {lag:,} records behind"
    yield f"  {verdict.why}"
    for one in verdict.advice:
        yield f"  {one.setting}: {one.now} → {one.wanted}   ({one.because})"
    if network:
        yield "  the system's network settings, for a mirror between sites:"
        yield from (f"    {one.because}   # now {one.now}" for one in network)


COMMANDS: tuple[click.Command, ...] = (canary, load, advise)
