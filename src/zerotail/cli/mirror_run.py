"""The commands of `zerotail mirror` that copy and look at copies."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import click

from zerotail.cli.mirror_options import config_option, load_configuration, name_argument, state_of
from zerotail.cli.output import json_option, print_json, say
from zerotail.errors import Misused, Refused

if TYPE_CHECKING:
    from zerotail.config import Configuration
    from zerotail.core.copying import Kind
    from zerotail.core.topology import Flow


@click.command("run", epilog="Example:  zerotail mirror run east-west --at west")
@name_argument
@click.option("--at", "site", metavar="SITE", help="The site or cluster where this runs: the flows into it.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="KIND:TOPIC",
    help="Go on past what stopped a topic: recreated, truncated or expired. What is missing stays missing.",
)
@config_option
@json_option
def run_mirror(name: str | None, site: str | None, accepted: tuple[str, ...], path: str | None, as_json: bool) -> int:
    """Copy until stopped: every record once, in its partition, with key, headers and timestamp.

    A mirror belongs at the target: --at names it, and only the flows into it run. Exits with 6 when a newer start of
    the same mirror is at work.
    """
    from zerotail.mirror.flows import require_flows

    configuration = load_configuration(path)
    flows = require_flows(configuration, name)
    here = tuple(flow for flow in flows if site in (None, flow.target))
    if not here:
        raise Refused(
            f"no flow of {flows[0].mirror} leads to {site}, so nothing of it runs there.",
            code="ZT491",
            why="A mirror reads remotely and writes locally: what a cut link keeps back is still safe at the source.",
            tries=[f"zerotail mirror run {flows[0].mirror} --at {flow.target}" for flow in flows],
        )
    past = _accepted(accepted)
    if here[0].engine == "mm2":
        return _run_maker(configuration, here, as_json)
    return _run_on_spark(configuration, here, past, as_json)


def _run_maker(configuration: Configuration, flows: tuple[Flow, ...], as_json: bool) -> int:
    from zerotail.mirror.flows import clusters_of
    from zerotail.mirror.maker_run import MakerRun

    clusters = clusters_of(configuration)
    run = MakerRun(flows, clusters, state_of(configuration), tell)
    return until_stopped(flows, run.run, run.stop, as_json)


def _run_on_spark(
    configuration: Configuration, flows: tuple[Flow, ...], accepted: frozenset[tuple[Kind, str]], as_json: bool
) -> int:
    from zerotail.spark.application import Application
    from zerotail.spark.mirror_application import run_flows

    application = Application(configuration, tell)
    state = state_of(configuration)
    return until_stopped(
        flows,
        lambda: run_flows(configuration, flows, accepted, state, application, tell),
        application.stop,
        as_json,
    )


def _accepted(given: tuple[str, ...]) -> frozenset[tuple[Kind, str]]:
    from zerotail.core.copying import Kind

    found = set()
    for word in given:
        kind, colon, topic = word.partition(":")
        if not colon or not topic or kind not in set(Kind) - {Kind.DELETED}:
            raise Misused(
                f"--accept takes KIND:TOPIC, not {word!r}.",
                code="ZT154",
                tries=["--accept recreated:audit-1", "--accept expired:audit-1", "--accept truncated:audit-1"],
            )
        found.add((Kind(kind), topic))
    return frozenset(found)


def tell(line: str) -> None:
    """One line with its time: these processes run for months, and somebody will ask when it was."""
    say(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {line}")


def until_stopped(flows: tuple[Flow, ...], run: Callable[[], int], stop: Callable[[], None], as_json: bool) -> int:
    """Run until Ctrl-C or `kill`, which is how such a process ends normally."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop())
    ways = ", ".join(f"{flow.source} → {flow.target}" for flow in flows)
    tell(f"mirror {flows[0].mirror}: {ways}; Ctrl-C ends it")
    exit_code = run()
    if as_json:
        from zerotail.cli.answers import RunAnswer

        print_json("run", RunAnswer(f"mirror {flows[0].mirror}", flows[0].target, exit_code))
    return exit_code


COMMANDS: tuple[click.Command, ...] = (run_mirror,)
