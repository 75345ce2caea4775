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


@click.group("rejoin", epilog="Example:  zerotail rejoin plan --site east")
def command() -> None:
    """Bring a lost site back as standby, and the epoch back to gated: plan, run."""


@command.command("plan", epilog="Example:  zerotail rejoin plan --site east")
@_site_option
@look_options
@json_option
def plan(site: str, path: str | None, state: str | None, as_json: bool) -> None:
    """What a rejoin would do now; changes nothing."""
    show_plan(_planned(operator_of(path, state), site).shown, as_json=as_json)


@command.command("run", epilog="Example:  zerotail rejoin run --site east --plan 1f2e3d4c5b --confirm east")
@_site_option
@click.option("--accept-lost-database", metavar="S", help="The database of S is lost, and has not gone on alone.")
@confirm_options
@look_options
@json_option
def run(
    site: str,
    accept_lost_database: str | None,
    plan_id: str | None,
    confirm: str | None,
    path: str | None,
    state: str | None,
    as_json: bool,
) -> None:
    """Carry out the plan that `plan` printed. Interrupted, it is planned and run again."""
    from zerotail.errors import Misused
    from zerotail.operate.rejoin import run_rejoin

    operator = operator_of(path, state)
    if accept_lost_database not in (None, site):
        raise Misused(f"the site that comes back is {site}.", code="ZT122", tries=(f"--accept-lost-database {site}",))
    accepted = (f"--accept-lost-database {accept_lost_database}",) if accept_lost_database else ()
    planned = confirmed(lambda: _planned(operator, site), accepted, plan_id, confirm)
    with telling(operator, "rejoin") as told:
        report = run_rejoin(told, planned, accepted)
    show_report(report, as_json=as_json)


def _planned(operator: Operator, site: str) -> PlannedRejoin:
    from zerotail.operate.rejoin import plan_rejoin
    from zerotail.operate.world import observe_world

    chosen = operator.configuration.require_site(site)
    return plan_rejoin(operator.configuration, observe_world(operator.configuration), chosen)
