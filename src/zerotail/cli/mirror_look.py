"""The commands of `zerotail mirror` that look: how far it is, whether the copies are right, where groups go on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zerotail.cli.mirror_options import config_option, load_configuration, name_argument, state_of
from zerotail.cli.output import json_option, print_answer, print_json, say, tick

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zerotail.mirror.comparison import Compared
    from zerotail.mirror.standing import FlowStanding
    from zerotail.mirror.translation import Translated

_SHOWN_METRICS = (
    "fetch-size-avg",
    "fetch-size-max",
    "fetch-rate",
    "fetch-throttle-time-avg",
    "fetch-throttle-time-max",
    "batch-size-avg",
    "batch-size-max",
    "requests-in-flight",
    "record-retry-rate",
    "io-ratio",
    "io-wait-ratio",
)


@click.command("status", epilog="Example:  zerotail mirror status east-west")
@name_argument
@click.option("--all", "everything", is_flag=True, help="Show every partition, not only the ten worst of each flow.")
@config_option
@json_option
def status(name: str | None, everything: bool, path: str | None, as_json: bool) -> int:
    """Lag in records and seconds with its trend, the clients' metrics, and every partition's state, worst first.

    Positions are asked of Kafka at both ends; the metrics are those of a mirror that runs on this machine. Exits with 1
    when a partition has stopped or waits, or when a cluster does not answer.
    """
    from zerotail.mirror.flows import clusters_of, flows_of, require_flows
    from zerotail.mirror.standing import observe_flow

    configuration = load_configuration(path)
    clusters = clusters_of(configuration)
    if name is not None:
        flows = require_flows(configuration, name)
    else:
        flows = tuple(flow for mirror in configuration.mirrors for flow in flows_of(configuration, mirror))
    late = configuration.objectives.lag.total_seconds()
    state = state_of(configuration)
    found = [
        observe_flow(flow, clusters[flow.source], clusters[flow.target], state, late_seconds=late) for flow in flows
    ]
    well = all(one.is_well for one in found)
    if as_json:
        from zerotail.cli.mirror_answers import MirrorStatusAnswer

        print_json("mirror-status", MirrorStatusAnswer(well, tuple(found)))
    else:
        print_answer("\n".join(line for one in found for line in _told_standing(one, everything)))
    return 0 if well else 1


def _told_standing(one: FlowStanding, everything: bool) -> Iterator[str]:
    runs = {True: "runs here", False: "does not run here", None: "not seen on this machine"}[one.runs]
    yield f"{tick(one.is_well, sys.stdout)} {one.flow}   {one.source} ──▶ {one.target}   engine {one.engine}   {runs}"
    if one.silent:
        yield f"    {one.silent}"
        return
    yield f"    {one.lag_records:,} records behind, {one.lag_seconds:.1f} s"
    width = max([24, *(len(f"{row.topic}/{row.partition}") for row in one.partitions)])
    yield f"    {'partition':<{width}} {'state':<9} {'behind':>10} {'seconds':>8}  trend"
    shown = one.partitions if everything else one.partitions[:10]
    for row in shown:
        age = "?" if row.lag_seconds is None else f"{row.lag_seconds:.1f}"
        arrow = "→" if abs(row.trend) < 1 else f"↑ {row.trend:,.0f}/s" if row.trend > 0 else f"↓ {-row.trend:,.0f}/s"
        where = f"{row.topic}/{row.partition}"
        yield f"    {where:<{width}} {row.state:<9} {row.lag_records:>10,} {age:>8}  {arrow}   {row.note}".rstrip()
    if len(shown) < len(one.partitions):
        yield f"    … and {len(one.partitions) - len(shown)} more"
    yield from _told_metrics(one)


def _told_metrics(one: FlowStanding) -> Iterator[str]:
    by_place: dict[str, Mapping[str, float]] = {"all": one.metrics} if one.metrics else {}
    by_place |= {f"{row.topic}/{row.partition}": row.metrics for row in one.partitions[:10] if row.metrics}
    if not by_place:
        return
    width = max(len(name) for name in by_place)
    for metric in _SHOWN_METRICS:
        values = [(name, metrics[metric]) for name, metrics in by_place.items() if metric in metrics]
        if values:
            worst = max(values, key=lambda pair: pair[1])
            yield f"    {metric:<26} {worst[1]:>14,.3f}   {worst[0]:<{width}}".rstrip()


@click.command("verify", epilog="Example:  zerotail mirror verify east-west")
@name_argument
@click.option("--master", metavar="M", help="Where Spark runs; else as configured.")
@config_option
@json_option
def verify(name: str | None, master: str | None, path: str | None, as_json: bool) -> int:
    """Compare source and target by count, order and digest, as a Spark job. Exits with 1 when they differ.

    Everything up to where it has been copied is compared, so it may run beside the mirror.
    """
    from zerotail.mirror.flows import clusters_of, require_flows
    from zerotail.mirror.verification import verify_flow
    from zerotail.spark.mirror_verify import comparer
    from zerotail.spark.session import session_for_a_look

    configuration = load_configuration(path)
    flows, clusters = require_flows(configuration, name), clusters_of(configuration)
    settings = {key: value.reveal() for key, value in configuration.spark.settings.items()}
    found: list[tuple[str, Compared]] = []
    with session_for_a_look(master or configuration.spark.master, settings) as spark:
        for flow in flows:
            source, target = clusters[flow.source], clusters[flow.target]
            say(f"mirror verify: {flow.source} and {flow.target}")
            compare = comparer(spark, flow, source, target)
            found += [(flow.name, one) for one in verify_flow(flow, source, target, compare)]
    agrees = all(one.agrees for _, one in found)
    if as_json:
        from zerotail.cli.mirror_answers import MirrorVerifyAnswer, TopicVerified

        print_json("mirror-verify", MirrorVerifyAnswer(agrees, tuple(TopicVerified(*one) for one in found)))
    else:
        print_answer("\n".join(_told_compared(flow, one) for flow, one in found) or "nothing has been copied yet")
    return 0 if agrees else 1


def _told_compared(flow: str, one: Compared) -> str:
    wrong = {
        "lost": one.lost,
        "doubled": one.doubled,
        "different": one.different,
        "out of order": one.disordered,
        "foreign": one.foreign,
    }
    said = ", ".join(f"{count:,} {word}" for word, count in wrong.items() if count) or "every record once, in order"
    return f"{tick(one.agrees, sys.stdout)} {flow} {one.topic}: {one.records:,} records, {one.copies:,} copies, {said}"


@click.command("offsets", epilog="Example:  zerotail mirror offsets east-west --group billing --apply")
@name_argument
@click.option("--group", required=True, metavar="G", help="A consumer group of the source.")
@click.option("--apply", "apply_them", is_flag=True, help="Set the positions at the target; no member may run there.")
@click.option("--from", "source", metavar="CLUSTER", help="The source; needed when the mirror has several flows.")
@config_option
@json_option
def offsets(name: str | None, group: str, apply_them: bool, source: str | None, path: str | None, as_json: bool) -> int:
    """Where a consumer group of the source goes on at the target, translated record by record.

    The copies carry the offsets that they had: the first one that the group has not read is looked up in the target's
    log. Exits with 1 when a position is not exact.
    """
    from zerotail.cli.mirror_answers import MirrorOffsetsAnswer
    from zerotail.errors import Misused
    from zerotail.mirror.flows import clusters_of, require_flows
    from zerotail.mirror.offsets import apply_positions, translate_group

    configuration = load_configuration(path)
    flows = require_flows(configuration, name, source=source)
    if len(flows) > 1:
        known = ", ".join(flow.source for flow in flows)
        raise Misused(f"{flows[0].mirror} has several flows.", code="ZT155", tries=[f"--from one of: {known}"])
    (flow,) = flows
    everything = require_flows(configuration, name, target=flow.target)
    clusters = clusters_of(configuration)
    shared = flow.names == "identity" and len(everything) > 1
    found = translate_group(flow, clusters[flow.source], clusters[flow.target], group, shared)
    if apply_them:
        apply_positions(flow, clusters[flow.target], group, found)
    exact = all(one.exact for one in found)
    if as_json:
        print_json("mirror-offsets", MirrorOffsetsAnswer(exact, group, flow.target, apply_them, found))
    else:
        print_answer("\n".join(_told_offsets(found, group, flow.target, apply_them)))
    return 0 if exact else 1


def _told_offsets(found: tuple[Translated, ...], group: str, target: str, applied: bool) -> Iterator[str]:
    yield f"{group} at {target}: {'set' if applied else 'would go on'} here"
    for one in found:
        sign = "=" if one.exact else "≤"
        yield (
            f"  {one.topic}/{one.partition}  {one.source_position:>12} {sign} {one.target_topic}/{one.partition} "
            f"{one.target_position:>12}  {one.note}".rstrip()
        )


COMMANDS: tuple[click.Command, ...] = (status, verify, offsets)
