"""`zerotail lab load`."""

from __future__ import annotations

from pathlib import Path

import click

from zerotail.cli.lab_options import dir_option
from zerotail.cli.output import json_option, print_answer, print_json, say


@click.command(epilog="Example:  zerotail lab load --rate 2000 --count 100000")
@click.option(
    "--rate",
    type=click.FloatRange(0, 1_000_000),
    default=1000.0,
    show_default=True,
    metavar="R",
    help="Instructions a second; 0 is as fast as possible.",
)
@click.option("--count", type=click.IntRange(1), default=10_000, show_default=True, metavar="N", help="How many.")
@click.option(
    "--writers", type=click.IntRange(1, 64), default=4, show_default=True, metavar="W", help="Sessions that insert."
)
@click.option(
    "--accounts",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    metavar="A",
    help="Accounts, a few of them far busier than the rest.",
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="S", help="Another seed, other payments.")
@click.option("--stamp", is_flag=True, help="Let each say at which microsecond it was given.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for producers to be registered.",
)
@dir_option
@json_option
def load(
    rate: float,
    count: int,
    writers: int,
    accounts: int,
    seed: int,
    stamp: bool,
    wait_seconds: float,
    folder: Path,
    as_json: bool,
) -> None:
    """Insert instructions, as a business would: many accounts, several writers at once.

    For the producers that zerotail.yaml in the lab's folder names, into the database that takes writes. Ctrl-C ends
    it; what was inserted stays.
    """
    from zerotail.cli.frame import Interrupted
    from zerotail.cli.progress import count_display
    from zerotail.config import load as load_configuration
    from zerotail.deadline import Deadline
    from zerotail.lab.example import CONFIGURATION
    from zerotail.lab.layout import require_layout
    from zerotail.lab.load import IN_DOUBT, Load, LoadSettings, find_database

    configuration = load_configuration(require_layout(folder).path / CONFIGURATION)
    settings = LoadSettings(count, rate, writers, accounts, seed, stamp)
    database = find_database(configuration)
    say(f"lab load: into the database of {database.site}, once its producers are registered")
    work = Load(configuration, database, settings, Deadline.after(wait_seconds))
    try:
        with count_display("lab load", count) as tell:
            loaded = work.run(tell)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; {work.inserted} of {count} instructions were inserted.",
            why=IN_DOUBT if work.unanswered else "",
        ) from None
    if as_json:
        print_json("lab-load", loaded)
        return
    shares = ", ".join(f"{name} {number}" for name, number in loaded.by_producer.items())
    print_answer(
        f"{loaded.inserted} instructions inserted at {loaded.site} in {loaded.seconds:.1f} s "
        f"({loaded.rows_per_second:.0f}/s)\n  {shares}"
    )
