"""`zerotail takeover`: the other site goes on at the break point."""

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
    from datetime import timedelta

    from zerotail.operate.act import Operator
    from zerotail.operate.takeover import PlannedTakeover, Statements


STRATEGIES = ["skip", "follower", "auto", "ordered-refill", "unbounded", "bounded", "sort", "mirror-tail"]


def _strategy_option(otherwise: str) -> Callable[..., Any]:
    text = f"How the topics of the site are filled; else as {otherwise}."
    return click.option("--strategy", type=click.Choice(STRATEGIES), help=text)


_rebuild_option = click.option(
    "--rebuild-state", "rebuild", is_flag=True, help="Replay the restored records through the handlers, and compare."
)


def _statements(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        _rebuild_option,
        _strategy_option("the configuration says"),
        click.option(
            "--accept-loss", is_flag=True, help="This copy may lack what was sent while exposed: go on anyway."
        ),
        click.option(
            "--accept-version", is_flag=True, help="The code does with old records what the recorded code did: replay."
        ),
        click.option("--accept-age", metavar="DURATION", help="Nothing has happened for so long: an old copy will do."),
        click.option("--accept-lost-site", metavar="S", help="S is out, and will not take over: go on without it."),
        click.option("--accept-unfenced-site", metavar="S", help="S is still live, and may go on running."),
    ):
        function = option(function)
    return function


@click.group("takeover", epilog="Example:  zerotail takeover plan --to west")
def command() -> None:
    """Make a site the active one after the other was lost: plan, run, status, resume."""


@command.command("plan", epilog="Example:  zerotail takeover plan --to west")
@to_option
@_statements
@look_options
@json_option
def plan(
    site: str,
    accept_unfenced_site: str | None,
    accept_lost_site: str | None,
    accept_loss: bool,
    accept_age: str | None,
    accept_version: bool,
    strategy: str | None,
    rebuild: bool,
    path: str | None,
    state: str | None,
    as_json: bool,
) -> None:
    """What a takeover would do now; changes nothing."""
    operator = operator_of(path, state)
    stated = _stated(
        operator, accept_unfenced_site, accept_lost_site, accept_loss, accept_age, strategy, rebuild, accept_version
    )
    show_plan(_planned(operator, site, stated).shown, as_json=as_json)


@command.command("run", epilog="Example:  zerotail takeover run --to west --plan 1f2e3d4c5b --confirm west")
@to_option
@_statements
@confirm_options
@look_options
@json_option
def run(
    site: str,
    accept_unfenced_site: str | None,
    accept_lost_site: str | None,
    accept_loss: bool,
    accept_age: str | None,
    accept_version: bool,
    strategy: str | None,
    rebuild: bool,
    plan_id: str | None,
    confirm: str | None,
    path: str | None,
    state: str | None,
    as_json: bool,
) -> None:
    """Carry out the plan that `plan` printed; refused when the world has changed since."""
    from zerotail.operate.takeover import run_takeover

    operator = operator_of(path, state)
    stated = _stated(
        operator, accept_unfenced_site, accept_lost_site, accept_loss, accept_age, strategy, rebuild, accept_version
    )
    planned = confirmed(lambda: _planned(operator, site, stated), stated.flags, plan_id, confirm)
    with telling(operator, "takeover") as told:
        report = run_takeover(told, planned, stated.flags)
    show_report(report, as_json=as_json)


command.add_command(status_command("takeover"))


@command.command("resume", epilog="Example:  zerotail takeover resume")
@maybe_to_option
@_strategy_option("it was begun")
@_rebuild_option
@look_options
@json_option
def resume(
    site: str | None, strategy: str | None, rebuild: bool, path: str | None, state: str | None, as_json: bool
) -> None:
    """Finish a takeover that was interrupted, wherever that was."""
    from zerotail.operate.takeover import nothing_begun, plan_rest, resume_takeover
    from zerotail.operate.world import observe_world

    operator = operator_of(path, state)
    named = operator.configuration.require_site(site) if site else None
    notes, world = operator.notebook, observe_world(operator.configuration, ask_receivers=True)
    last, begun = notes.find_last(("takeover",), named), notes.find_unfinished(("takeover",), named)
    chosen = named or (begun.site if begun else world.find_begun()) or (last.site if last else None)
    if chosen is None:
        raise nothing_begun("takeover", None)
    stated = _stated(operator, None, None, False, None, strategy, rebuild)
    planned = plan_rest(operator.configuration, world, chosen, begun, stated)
    with telling(operator, "takeover") as told:
        report = resume_takeover(told, planned)
    show_report(report, as_json=as_json)


def _stated(
    operator: Operator,
    unfenced: str | None,
    lost: str | None,
    loss: bool,
    age: str | None,
    strategy: str | None,
    rebuild: bool,
    version: bool = False,
) -> Statements:
    from zerotail.core.takeover import Strategy
    from zerotail.operate.takeover import Statements

    named = [operator.configuration.require_site(name) if name else None for name in (unfenced, lost)]
    chosen = None if strategy is None else Strategy(strategy)
    return Statements(named[0], named[1], loss, None if age is None else _duration(age), chosen, rebuild, version)


def _duration(typed: str) -> timedelta:
    from zerotail.config.problem import Unfit
    from zerotail.config.scalar import read_duration
    from zerotail.errors import Misused

    try:
        return read_duration(typed)
    except Unfit as problem:
        raise Misused(f"--accept-age {problem}, not {typed!r}.", code="ZT149", tries=["--accept-age 2h"]) from problem


def _planned(operator: Operator, site: str, stated: Statements) -> PlannedTakeover:
    from zerotail.operate.takeover import plan_takeover
    from zerotail.operate.world import observe_world
    from zerotail.running.code_versions import require_loadable

    chosen = operator.configuration.require_site(site)
    world = observe_world(operator.configuration, ask_receivers=True)
    planned = plan_takeover(operator.configuration, world, chosen, stated)
    if not planned.shown.done and not planned.alone:  # whoever goes on alone has loaded it
        require_loadable(operator.configuration)
    return planned
