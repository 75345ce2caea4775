"""The commands of `zerotail mirror` for MirrorMaker 2."""

from __future__ import annotations

import click

from zerotail.cli.mirror_options import config_option, load_configuration, name_argument
from zerotail.cli.output import json_option, print_answer, print_json
from zerotail.errors import Misused


@click.command("generate", epilog="Example:  zerotail mirror generate reports --for strimzi --copies 3")
@name_argument
@click.option("--for", "form", type=click.Choice(["properties", "strimzi"]), default="properties", show_default=True)
@click.option("--target", metavar="CLUSTER", help="The target; needed when the mirror has several.")
@click.option("--copies", type=click.IntRange(1, 15), default=3, show_default=True, help="Of topics that are made.")
@click.option(
    "--tasks", type=click.IntRange(1, 1000), default=4, show_default=True, help="At most so many in parallel."
)
@click.option("--at-least-once", is_flag=True, help="Without transactions: faster, and a crash doubles records.")
@config_option
@json_option
def generate(
    name: str | None,
    form: str,
    target: str | None,
    copies: int,
    tasks: int,
    at_least_once: bool,
    path: str | None,
    as_json: bool,
) -> None:
    """MirrorMaker 2's configuration from ours, set so that nothing is lost: as properties or as a Strimzi resource.

    References to secrets stay references. The result is printed; nothing is contacted.
    """
    from zerotail.mirror.flows import clusters_of, require_flows
    from zerotail.mirror.maker import MakerSettings, plan_properties, plan_resource, render_properties

    configuration = load_configuration(path)
    flows = require_flows(configuration, name, target=target)
    if len({flow.target for flow in flows}) > 1:
        known = ", ".join(dict.fromkeys(flow.target for flow in flows))
        raise Misused(
            f"{flows[0].mirror} has several targets, and Connect runs at one.",
            code="ZT155",
            tries=[f"--target one of: {known}"],
        )
    clusters = {name: one.for_java() for name, one in clusters_of(configuration, as_written=True).items()}
    settings = MakerSettings(copies, tasks, not at_least_once)
    if form == "strimzi":
        import yaml

        text = yaml.safe_dump(plan_resource(flows[0].mirror, flows, clusters, settings), sort_keys=False)
    else:
        text = render_properties(plan_properties(flows, clusters, settings))
    if as_json:
        from zerotail.cli.mirror_answers import MirrorGenerateAnswer

        print_json("mirror-generate", MirrorGenerateAnswer(flows[0].mirror, form, text))
    else:
        print_answer(text)


COMMANDS: tuple[click.Command, ...] = (generate,)
