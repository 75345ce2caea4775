"""`zerotail handover` and `zerotail failback`: the active role moves on a quiet day, with nothing in doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from zerotail.cli.act_options import (
    confirm_options,
    confirmed,
    look_options,
    maybe_to_option,
    operator_of,
    show_plan,
    show_report,
    status_command,
    telling,
    to_option,
)
from zerotail.cli.output import json_option

if TYPE_CHECKING:
    from zerotail.operate.act import Operator
    from zerotail.operate.handover import PlannedHandover


def make_group(act: str, text: str, target: Callable[..., Any], maybe_target: Callable[..., Any]) -> click.Group:
    """The commands of a handover; a failback has no `--to`, its target is the preferred site."""
    example = " --to west" if act == "handover" else ""

    @click.group(act, help=text, epilog=f"Example:  zerotail {act} plan{example}")
    def group() -> None:
        pass

    group.add_command(_plan_command(act, target, example))
    group.add_command(_run_command(act, target, example))
    group.add_command(status_command(act))
    group.add_command(_resume_command(act, maybe_target))
    return group


def _plan_command(act: str, target: Callable[..., Any], example: str) -> click.Command:
    @click.command("plan", epilog=f"Example:  zerotail {act} plan{example}")
    @target
    @look_options
    @json_option
    def plan(path: str | None, state: str | None, as_json: bool, site: str | None = None) -> None:
        """What it would do now; changes nothing."""
        show_plan(_planned(operator_of(path, state), site, act).shown, as_json=as_json)

    return plan


def _run_command(act: str, target: Callable[..., Any], example: str) -> click.Command:
    # A failback leads to the preferred site, which is the first one unless `prefer` says something else.
    target_site = "west" if act == "handover" else "east"

    @click.command("run", epilog=f"Example:  zerotail {act} run{example} --plan 1f2e3d4c5b --confirm {target_site}")
    @target
    @confirm_options
    @look_options
    @json_option
    def run(
        plan_id: str | None,
        confirm: str | None,
        path: str | None,
        state: str | None,
        as_json: bool,
        site: str | None = None,
    ) -> None:
        """Carry out the plan that `plan` printed; refused when the world has changed since."""
        from zerotail.operate.handover import run_handover

        operator = operator_of(path, state)
        planned = confirmed(lambda: _planned(operator, site, act), (), plan_id, confirm)
        with telling(operator, act) as told:
            report = run_handover(told, planned, ())
        show_report(report, as_json=as_json)

    return run


def _resume_command(act: str, maybe_target: Callable[..., Any]) -> click.Command:
    @click.command("resume", epilog=f"Example:  zerotail {act} resume")
    @maybe_target
    @look_options
    @json_option
    def resume(path: str | None, state: str | None, as_json: bool, site: str | None = None) -> None:
        """Finish one that was interrupted, wherever that was."""
        from zerotail.operate.handover import resume_handover
        from zerotail.operate.world import observe_world

        operator = operator_of(path, state)
        chosen = operator.configuration.require_site(site) if site else None
        world = observe_world(operator.configuration)
        with telling(operator, act) as told:
            report = resume_handover(told, world, chosen, act)
        show_report(report, as_json=as_json)

    return resume


def no_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """Instead of `--to`."""
    return function


def _planned(operator: Operator, site: str | None, act: str) -> PlannedHandover:
    from zerotail.operate.handover import plan_handover
    from zerotail.operate.world import observe_world
    from zerotail.running.code_versions import require_loadable

    configuration = operator.configuration
    target = configuration.require_site(site) if site else configuration.preferred_site
    planned = plan_handover(configuration, observe_world(configuration), target, act)
    if not planned.shown.done:
        require_loadable(configuration)
    return planned


command = make_group(
    "handover",
    "Move the active role to the other site, with nothing in doubt: plan, run, status, resume.",
    to_option,
    maybe_to_option,
)
