"""`zerotail reconcile`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zerotail.cli.database_options import chosen_pair, chosen_transforms, database_options, peer_option
from zerotail.cli.output import json_option, print_answer, print_json, say, tick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerotail.core.reconciliation import Reconciliation


@click.command("reconcile", epilog="Example:  zerotail reconcile --config zerotail.yaml")
@database_options
@peer_option
@click.option("--alone", is_flag=True, help="Do not look at the other site.")
@click.option("--master", default="local[2]", show_default=True, metavar="M", help="Where Spark runs.")
@json_option
def command(
    config: str | None,
    site: str | None,
    dsn: str | None,
    peer_dsn: str | None,
    alone: bool,
    master: str,
    as_json: bool,
) -> int:
    """Is every instruction applied exactly once, does the journal hang together, are both sites equal?

    A Spark job over all rows and segments, up to where the journal has come. Exits with 0 when everything is right,
    with 1 when there is a difference.
    """
    here, there = chosen_pair(config, site, dsn, peer_dsn)
    transforms = chosen_transforms(config, dsn)
    if alone:
        there = None
    from zerotail.spark.reconcile import reconcile
    from zerotail.spark.session import session_for_a_look

    say(f"reconcile: {here.name}{f' and {there.name}' if there else ' alone'}, on Spark {master}")
    with session_for_a_look(master) as spark:
        found = reconcile(spark, here.dsn, there.dsn if there else None, transforms=transforms)
    if as_json:
        from zerotail.cli.answers import ReconcileAnswer

        print_json("reconcile", ReconcileAnswer(found.ok, found))
    else:
        print_answer("\n".join(_told(found)))
    return 0 if found.ok else 1


def _told(found: Reconciliation) -> Iterator[str]:
    total = sum(found.counts.values())
    equal = ", both sites equal" if found.compared else ""
    yield (
        f"{tick(True, sys.stdout)} every row was applied exactly once, the journal hangs together{equal}"
        if found.ok
        else f"{tick(False, sys.stdout)} {total} differences: {', '.join(f'{n} {k}' for k, n in found.counts.items())}"
    )
    yield f"  {found.rows} rows, {found.applied} applied in {found.segments} segments, {found.waiting} waiting"
    for one in found.differences:
        names = {"segment": one.segment, "position": one.position, "producer": one.producer, "serial": one.serial}
        place = ", ".join(f"{name} {number}" for name, number in names.items() if number is not None)
        stage = f"{one.stage} " if one.stage else ""
        yield f"  {one.kind:<9} {stage}partition {one.partition}, {place}: {one.what}"
    if total > len(found.differences):
        yield f"  … and {total - len(found.differences)} more"
