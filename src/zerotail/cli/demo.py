"""`zerotail demo`: the whole story on this machine."""

from __future__ import annotations

import click

from zerotail.cli.output import json_option


@click.command("demo", epilog="Example:  zerotail demo --rate 2000")
@click.option(
    "--rate", type=click.FloatRange(1, 50_000), default=1000, show_default=True, help="Instructions a second."
)
@click.option("--dir", "folder", metavar="D", help="Where history and report go; else drills/demo-TIME.")
@json_option
def command(rate: float, folder: str | None, as_json: bool) -> int:
    """The whole story on this machine: two real sites, load, the loss of one, the other goes on, and the way back.

    Two Kafka clusters, two PostgreSQL, a Spark application at each site, a bank as receiver. In the middle of traffic
    everything of east is killed with kill -9; west takes over; east comes back as standby (rejoin) and gets the active
    role again (failback). The receiver is the judge.

    Exits with 0 when nothing was lost, doubled or out of order.
    """
    from zerotail.cli.drill import files_of, play, show_result
    from zerotail.drill.run import DrillSettings

    result = play("demo", DrillSettings(rate=rate), "R2", files_of("demo", folder))
    return show_result(result, "demo", as_json=as_json)
