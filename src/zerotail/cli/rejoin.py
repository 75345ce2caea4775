"""`zerotail rejoin`: a lost site comes back as standby."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zerotail.cli.act_options import (
    confirm_options,
    confirmed,
    look_options,
    operator_of,
    show_plan,
    show_report,
    telling,
)
from zerotail.cli.output import json_option

if TYPE_CHECKING:
    from zerotail.operate.act import Operator
    from zerotail.operate.rejoin import PlannedRejoin

_site_option = click.option("--site", metavar="SITE", required=True, help="The site that comes back.")
_loss_option = click.option(
    "--accept-loss", metavar="S", help="S holds what was released and the active site lacks: it may be lost."
)


@click.group("rejoin", epilog="Example:  zerotail rejoin plan --site east")
def command() -> None:
    """Bring a lost site back as standby, and the epoch back to gated: plan, run."""


@command.command("plan", epilog="Example:  zerotail rejoin plan --site east")
@_site_option
@_loss_option
@look_options
@json_option
def plan(site: str, accept_loss: str | None, path: str | None, state: str | None, as_json: bool) -> None:
    """What a rejoin would do now; changes nothing."""
    _require_same_site(site, "--accept-loss", accept_loss)
    show_plan(_planned(operator_of(path, state), site, accept_loss).shown, as_json=as_json)


@command.command("run", epilog="Example:  zerotail rejoin run --site east --plan 1f2e3d4c5b --confirm east")
@_site_option
@click.option("--accept-lost-database", metavar="S", help="The database of S is lost, and has not gone on alone.")
@_loss_option
@confirm_options
@look_options
@json_option
def run(
    site: str,
    accept_lost_database: str | None,
    accept_loss: str | None,
    plan_id: str | None,
    confirm: str | None,
    path: str | None,
    state: str | None,
    as_json: bool,
) -> None:
    """Carry out the plan that `plan` printed. Interrupted, it is planned and run again."""
    from zerotail.operate.rejoin import run_rejoin

    operator = operator_of(path, state)
    stated = (("--accept-lost-database", accept_lost_database), ("--accept-loss", accept_loss))
    for flag, named in stated:
        _require_same_site(site, flag, named)
    accepted = tuple(f"{flag} {named}" for flag, named in stated if named)
    planned = confirmed(lambda: _planned(operator, site, accept_loss), accepted, plan_id, confirm)
    with telling(operator, "rejoin") as told:
        report = run_rejoin(told, planned, accepted)
    show_report(report, as_json=as_json)


def _require_same_site(site: str, flag: str, named: str | None) -> None:
    from zerotail.errors import Misused

    if named not in (None, site):
        raise Misused(f"the site that comes back is {site}.", code="ZT122", tries=(f"{flag} {site}",))


def _planned(operator: Operator, site: str, accept_loss: str | None) -> PlannedRejoin:
    from zerotail.operate.rejoin import plan_rejoin
    from zerotail.operate.world import observe_world

    chosen = operator.configuration.require_site(site)
    world = observe_world(operator.configuration)
    return plan_rejoin(operator.configuration, world, chosen, accept_loss=accept_loss is not None)
