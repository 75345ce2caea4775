"""`zerotail mirror …`: whole topics copied between clusters."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zerotail.cli.mirror_options import config_option, load_configuration, name_argument
from zerotail.cli.output import json_option, print_answer, print_json, tick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerotail.mirror.planning import MirrorPlan, PlannedMirror

_WIDTH = 110


@click.group("mirror")
def command() -> None:
    """Whole topics copied between clusters: hub-and-spoke, active-active, active-passive, stretch.

    The mirrors are those of the configuration. One that runs on Spark copies every record exactly once, through kills
    of anything; one that runs MirrorMaker 2 is generated, supervised and watched in the same way.
    """


@command.command("list", epilog="Example:  zerotail mirror list")
@config_option
@json_option
def list_mirrors(path: str | None, as_json: bool) -> None:
    """The mirrors of the configuration and their flows. Contacts nobody."""
    from zerotail.cli.mirror_answers import MirrorListAnswer, MirrorShown
    from zerotail.mirror.flows import flows_of

    configuration = load_configuration(path)
    shown = [
        MirrorShown(
            mirror.called,
            mirror.topology,
            mirror.engine,
            tuple(f"{flow.source} → {flow.target}" for flow in flows_of(configuration, mirror)),
            mirror.topics,
            mirror.topic_names,
        )
        for mirror in configuration.mirrors
    ]
    if as_json:
        print_json("mirror-list", MirrorListAnswer(tuple(shown)))
        return
    width = max((len(one.name) for one in shown), default=0)
    lines = [
        f"{one.name:<{width}}  {one.topology:<14} {one.engine:<5}  "
        f"{', '.join(one.flows) or 'one cluster'}   {', '.join(one.topics)} ({one.topic_names})"
        for one in shown
    ]
    print_answer("\n".join(lines) or "the configuration has no mirrors")


@command.command("plan", epilog="Example:  zerotail mirror plan --svg mirrors.svg")
@name_argument
@click.option("--at", "run_at", metavar="SITE", help="Where it is to run; the rule is: at the target.")
@click.option("--svg", "picture", type=click.Path(path_type=Path), metavar="FILE", help="Write the drawing, too.")
@config_option
@json_option
def plan_mirrors(name: str | None, run_at: str | None, picture: Path | None, path: str | None, as_json: bool) -> int:
    """What would be copied where, what would be made at the target, and whether the principles hold.

    Looking changes nothing; a cluster that does not answer is named and left out. Exits with 1 when a principle does
    not hold: a cluster per site, each event copied once between two sites, the mirror at the target.
    """
    from zerotail.mirror.flows import require_mirror
    from zerotail.mirror.planning import observe_plan

    configuration = load_configuration(path)
    mirrors = configuration.mirrors if name is None else (require_mirror(configuration, name),)
    plan = observe_plan(configuration, mirrors, run_at)
    if picture is not None:
        from zerotail.mirror.drawing import draw

        picture.write_text(draw(plan), encoding="utf-8")
    if as_json:
        from zerotail.cli.mirror_answers import MirrorPlanAnswer

        print_json("mirror-plan", MirrorPlanAnswer(plan.sound, plan))
    else:
        print_answer("\n".join(_told_plan(plan)))
    return 0 if plan.sound else 1


def _told_plan(plan: MirrorPlan) -> Iterator[str]:
    for mirror in plan.mirrors:
        yield from _told_mirror(mirror)
    for name, reason in plan.silent.items():
        yield f"? {name}: {reason}"
    for principle in plan.principles:
        yield f"{tick(principle.holds, sys.stdout)} {principle.name}"
        yield from (f"    {objection}" for objection in principle.objections)


def _told_mirror(mirror: PlannedMirror) -> Iterator[str]:
    yield f"{mirror.name} · {mirror.topology} · engine {mirror.engine}"
    for planned in mirror.flows:
        flow = planned.flow
        names = "same names" if flow.names == "identity" else f"as {flow.source}.…"
        yield f"  {flow.source} ──▶ {flow.target}   {', '.join(flow.patterns)}   {names}   runs at {planned.runs_at}"
        for topic in planned.topics or ():
            todo = topic.todo or "ready"
            renamed = "" if topic.source == topic.target else f" as {topic.target}"
            notes = f"   ({'; '.join(topic.notes)})" if topic.notes else ""
            yield f"      {topic.source}{renamed}   {topic.partitions} partitions   {todo}{notes}"
        if planned.topics == ():
            yield f"      no topic of {flow.source} fits"
    if not mirror.flows:
        yield f"  {mirror.source[0]}   one cluster over several sites   {', '.join(mirror.patterns)}"
    yield textwrap.fill(mirror.meaning, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _add_other_commands() -> None:
    from zerotail.cli import mirror_look, mirror_maker, mirror_run, mirror_tune

    for module in (mirror_run, mirror_look, mirror_tune, mirror_maker):
        for other in module.COMMANDS:
            command.add_command(other)


_add_other_commands()
